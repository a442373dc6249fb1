#pragma once

#include <cstdint>

namespace skein {

// Random numbers that depend only on their position, not on earlier draws: the same (seed, stream,
// position) gives the same number under any load.
uint64_t RandomBitsAt(uint64_t seed, uint64_t stream, uint64_t position);
// Uniform in [0, 1), a multiple of 2^-53.
double UniformAt(uint64_t seed, uint64_t stream, uint64_t position);

// A sequence of random numbers from one seed, equal on every platform (for tests and workloads).
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}

  uint64_t Bits() { return RandomBitsAt(seed_, 0, position_++); }
  double Uniform() { return UniformAt(seed_, 0, position_++); }
  // Uniform in [low, high], both included. REQUIRES: low <= high.
  int64_t Between(int64_t low, int64_t high);
  bool OneIn(int64_t n) { return Between(1, n) == 1; }

 private:
  uint64_t seed_;
  uint64_t position_ = 0;
};

}  // namespace skein
