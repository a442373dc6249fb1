#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/json_file.h"

namespace skein {

// Bounds for which the product of any two sizes, times four bytes, fits 64 bits.
inline constexpr int64_t kMaxWidth = int64_t{1} << 22;  // of vocabulary, hidden size, MLP
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeads = 65536;
inline constexpr int64_t kMaxPosition = int64_t{1} << 30;

// Returns kUnsupported for a member: "<where>: '<key>' <problem>". The status names the field
// `param`, or `key` if `param` is empty.
Status Unsupported(const JsonObject& json, std::string_view key, const std::string& problem,
                   std::string_view param = {});

// Reads an integer in [1, max]; nullopt if the member is absent.
Result<std::optional<int32_t>> ReadSize(const JsonObject& json, const char* key, int64_t max);
// Reads an integer in [1, max] into *out. Fails with kInvalidArgument if the member is absent.
Status RequireSize(const JsonObject& json, const char* key, int64_t max, int32_t* out);

Result<bool> ReadFlag(const JsonObject& json, const char* key, bool absent);

}  // namespace skein
