#pragma once

// Checks for bugs, always on: a false condition is printed with its source line, and the process
// aborts. Input and environment are never checked this way; they fail with a Status.

namespace skein::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace skein::internal

#define SKEIN_CHECK(condition)                                        \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::skein::internal::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)
