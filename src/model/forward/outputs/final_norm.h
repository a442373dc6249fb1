#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "model/forward/pass_state.h"

namespace skein {

// Writes the last layer's output at a token of the batch, normalized, to `out` [hidden] of `dtype`.
// REQUIRES: the token is active.
void FinalNormRow(const PassState& pass, int32_t token, void* out, DType dtype);

}  // namespace skein
