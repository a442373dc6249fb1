#include "cuda/emulator/mma_words.h"

#include <cmath>
#include <cstring>

#include "kernels/fma_clones.h"

namespace skein::cuda {

SKEIN_FMA_CLONES void AddBf16Products(const MmaLaneWords& words, float (&sums)[4]) {
  const auto as_float = [](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  };
  for (int i = 0; i < 4; ++i) {
    for (int word = 0; word < 8; ++word) {
      const uint32_t x = words.rows[i / 2][word], y = words.columns[i % 2][word];
      sums[i] = std::fma(as_float(x << 16), as_float(y << 16), sums[i]);
      sums[i] = std::fma(as_float(x & 0xffff0000u), as_float(y & 0xffff0000u), sums[i]);
    }
  }
}

}  // namespace skein::cuda
