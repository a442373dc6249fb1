#pragma once

#include <cstdint>

namespace skein {

// A uniform number of [0, 1) with 53 random bits: a function of its arguments and nothing else, so
// that a draw does not depend on the load. Three rounds of a 64-bit finalizer, one per argument;
// each is a bijection of the state, so draws that differ in one argument never share a state.
inline double CounterRandom(uint64_t seed, uint64_t sample, uint64_t position) {
  const auto mix = [](uint64_t z) {
    // Multiply-xorshift with the constants of splitmix64 (Steele, Lea, Flood 2014, figure 16).
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  uint64_t state = mix(seed + kGolden);
  state = mix(state + (sample + 1) * kGolden);
  state = mix(state + (position + 1) * kGolden);
  return static_cast<double>(state >> 11) * 0x1p-53;
}

}  // namespace skein
