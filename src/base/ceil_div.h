#pragma once

#include <concepts>
#include <type_traits>

namespace skein {

// a / b, rounded up. REQUIRES: a >= 0, b > 0.
template <std::integral T>
constexpr T CeilDiv(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

}  // namespace skein
