#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"

namespace skein {

// A kernel on random operands of one shape.
struct GpuCase {
  std::string name;
  // Whether a GPU must have the emulator's bits. Not in products of bf16, whose order of sums
  // inside an instruction no document states.
  bool exact = false;
  // Runs it on a device, and returns its outputs. The operands are the same on every device.
  Result<std::vector<float>> (*run)(cuda::Device& device, uint64_t seed) = nullptr;
};

// Every kind of kernel.
const std::vector<GpuCase>& GpuCases();

// The largest difference of two outputs, as a part of the largest magnitude among them. NaN where
// one is a number and the other is none, or the sizes differ.
double LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

// A product of bf16 whose time is measured: m rows, weights [n, k].
struct GemmShape {
  int32_t m = 0, n = 0, k = 0;
};
// Seconds of one product, over `repetitions` of them behind each other. The weights of each are
// others, as far as 1 GiB holds them, so that no cache does.
Result<double> TimeGemm(cuda::Device& device, const GemmShape& shape, int32_t repetitions);

}  // namespace skein
