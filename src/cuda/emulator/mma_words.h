#pragma once

#include <cstdint>

namespace skein::cuda {

// The words of mma.m16n8 that one lane's four sums need. Sum i is of row i / 2 and column i % 2.
struct MmaLaneWords {
  uint32_t rows[2][8];     // of a
  uint32_t columns[2][8];  // of b
};

// Adds the products of bf16, two in a word, to each sum: a chain of fused operations in the order
// of the words. Half of the emulator's time would be calls of fmaf, which the processor's
// instruction replaces with the same bits where it has one.
void AddBf16Products(const MmaLaneWords& words, float (&sums)[4]);

}  // namespace skein::cuda
