#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "io/model_files.h"

namespace skein {

// Shows the share of the weights that have been written, on stderr if it is a terminal.
inline LoadProgress WriteProgress() {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [shown = int64_t{-1}](int64_t done, int64_t total) mutable {
    const int64_t percent = done * 100 / total;
    if (percent == shown) return;
    shown = percent;
    std::fprintf(stderr, "\rwriting weights: %3d %%%s", static_cast<int>(percent),
                 done == total ? "\n" : "");
  };
}

}  // namespace skein
