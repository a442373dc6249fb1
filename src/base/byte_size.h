#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// Parses the value of an option: "1536", "512MiB", "2GiB", "1.5 GiB", "2GB". Without the i, a unit
// is a power of 1000. Case is ignored. The value is at least one byte. Otherwise, fails with
// kInvalidArgument; the message names the option, quotes the text and says what is allowed.
Result<int64_t> ParseByteSize(const std::string& option, std::string_view text);

// Returns "2.0 GiB", "512.0 MiB", "17 B".
std::string FormatByteSize(int64_t bytes);

}  // namespace skein
