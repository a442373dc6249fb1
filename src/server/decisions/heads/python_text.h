#pragma once

#include <string_view>

namespace skein {

// The text without white space at its beginning, as Python's str.lstrip.
std::string_view WithoutLeadingSpace(std::string_view text);
// The text without white space at both ends, as Python's str.strip.
std::string_view Stripped(std::string_view text);

}  // namespace skein
