#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace skein {

// The length of the longest end of `text` that is a beginning of `mark`, but not the whole mark.
inline size_t HeldBytes(std::string_view text, std::string_view mark) {
  for (size_t held = std::min(text.size(), mark.empty() ? 0 : mark.size() - 1); held > 0; --held) {
    if (mark.starts_with(text.substr(text.size() - held))) return held;
  }
  return 0;
}

// Whether `text` may still grow into a text that begins with `mark`.
inline bool MayBegin(std::string_view text, std::string_view mark) {
  return text.size() < mark.size() && mark.starts_with(text);
}

}  // namespace skein
