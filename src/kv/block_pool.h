#pragma once

#include <cstdint>

namespace skein {

// A KV block: kBlockTokens tokens of every layer.
using BlockId = int32_t;
inline constexpr int32_t kBlockTokens = 32;

}  // namespace skein
