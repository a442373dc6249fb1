#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skein {

// "; did you mean 'NAME'?" with the name that `given` is most likely a misspelling of; empty if
// none is near. Letters that are missing, added, wrong or swapped count 1 each, and at most a third
// of the letters may be so.
std::string DidYouMean(std::string_view given, std::span<const std::string> names);

}  // namespace skein
