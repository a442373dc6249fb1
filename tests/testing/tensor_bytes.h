#pragma once

#include <cstdint>
#include <string>

#include "io/model_files.h"

namespace skein::testing {

// The bytes of all tensors of a model.
inline int64_t TensorBytes(const ModelFiles& files) {
  int64_t total = 0;
  for (const std::string& name : files.Names()) {
    const TensorInfo& info = files.Info(name);
    total += static_cast<int64_t>(info.end - info.begin);
  }
  return total;
}

}  // namespace skein::testing
