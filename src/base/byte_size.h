#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// The value of an option: reads "1536", "512MiB", "2GiB", "1.5 GiB", "2GB" (powers of 1000 without
// the i; case does not matter), at least a byte. kInvalidArgument, naming the option, quoting the
// text and what is allowed, otherwise.
Result<int64_t> ParseByteSize(const std::string& option, std::string_view text);

// "2.0 GiB", "512.0 MiB", "17 B".
std::string FormatByteSize(int64_t bytes);

}  // namespace skein
