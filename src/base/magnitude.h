#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace skein {

// The bits of the largest magnitude of x. A NaN is larger than infinity, 0x7f800000, which is
// larger than any number.
inline uint32_t LargestMagnitude(std::span<const float> x) {
  constexpr size_t kAtOnce = 16;  // a loop of this length becomes vectors
  int32_t largest[kAtOnce] = {};
  const auto note = [&](size_t lane, float e) {
    largest[lane] = std::max(largest[lane], std::bit_cast<int32_t>(e) & 0x7fffffff);
  };
  size_t i = 0;
  for (; i + kAtOnce <= x.size(); i += kAtOnce) {
    for (size_t lane = 0; lane < kAtOnce; ++lane) note(lane, x[i + lane]);
  }
  for (; i < x.size(); ++i) note(0, x[i]);
  return static_cast<uint32_t>(*std::max_element(largest, largest + kAtOnce));
}

}  // namespace skein
