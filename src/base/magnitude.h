#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace skein {

// The bits of the largest magnitude of x. A NaN is larger than infinity, 0x7f800000, which is
// larger than any number.
inline uint32_t LargestMagnitude(std::span<const float> x) {
  constexpr size_t kLanes = 8;
  typedef int32_t Ints [[gnu::vector_size(4 * kLanes)]];
  const auto larger = [](int32_t a, int32_t b) { return std::max(a, b & 0x7fffffff); };
  Ints most = {};
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    Ints bits;
    std::memcpy(&bits, &x[i], sizeof(bits));
    bits &= 0x7fffffff;
    most = most > bits ? most : bits;
  }
  int32_t largest = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) largest = larger(largest, most[lane]);
  for (; i < x.size(); ++i) largest = larger(largest, std::bit_cast<int32_t>(x[i]));
  return static_cast<uint32_t>(largest);
}

}  // namespace skein
