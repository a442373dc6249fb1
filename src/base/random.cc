#include "base/random.h"

#include "base/check.h"

namespace skein {

namespace {

// A bijection that spreads every input bit over all output bits (the finalizer of splitmix64).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t RandomBitsAt(uint64_t seed, uint64_t stream, uint64_t position) {
  return Mix(Mix(Mix(seed) + stream) + position);
}

double UniformAt(uint64_t seed, uint64_t stream, uint64_t position) {
  return static_cast<double>(RandomBitsAt(seed, stream, position) >> 11) * 0x1p-53;
}

int64_t Random::Between(int64_t low, int64_t high) {
  SKEIN_CHECK(low <= high);
  const auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  // A range of 0 means all 2^64 values. The bias of the remainder is below 2^-32 for small ranges.
  const uint64_t offset = range == 0 ? Bits() : Bits() % range;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

}  // namespace skein
