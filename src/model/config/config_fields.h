#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/json_file.h"

namespace skein {

// Bounds that keep every product of two sizes, times four bytes, inside 64 bits.
inline constexpr int64_t kMaxWidth = int64_t{1} << 22;  // vocabulary, hidden, MLP
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeads = 65536;
inline constexpr int64_t kMaxPosition = int64_t{1} << 30;

// kUnsupported for one member: "<where>: '<key>' <problem>". The status names the field `param`, or
// the key if that is empty.
Status Unsupported(const JsonObject& json, std::string_view key, const std::string& problem,
                   std::string_view param = {});

// An integer in [1, max]; nullopt if it is absent.
Result<std::optional<int32_t>> ReadSize(const JsonObject& json, const char* key, int64_t max);
// Reads such an integer into *out; if it is absent, fails with kInvalidArgument.
Status RequireSize(const JsonObject& json, const char* key, int64_t max, int32_t* out);

Result<bool> ReadFlag(const JsonObject& json, const char* key, bool absent);

}  // namespace skein
