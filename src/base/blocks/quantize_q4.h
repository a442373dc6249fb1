#pragma once

#include <cstddef>
#include <cstdint>

namespace skein {

inline constexpr int32_t kMostQ4Lanes = 16;

// Blocks of Q4_0 that are quantized side by side: 32 finite elements at each x, 18 bytes at each
// out.
struct BlocksQ4 {
  int32_t count = 0;
  const float* x[kMostQ4Lanes];
  std::byte* out[kMostQ4Lanes];
};

// The lanes of the widest vectors that the processor has: 4, 8 or 16 floats.
int32_t LanesQ4();

// Tries nine scales for each block, of which the largest element takes 7 to 9 steps, and keeps the
// one of the least squared error. The bytes do not depend on `lanes`. REQUIRES: `lanes` is 4, 8 or
// 16, at most LanesQ4() and at least blocks.count, which is at least 1.
void QuantizeQ4(const BlocksQ4& blocks, int32_t lanes);

}  // namespace skein
