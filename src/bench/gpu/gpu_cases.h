#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"

namespace skein {

// A kernel with random operands of one shape.
struct GpuCase {
  std::string name;
  // Whether a GPU must give the same bits as the emulator. False for products of bf16: no document
  // states the order of the sums inside an instruction. False also for functions of double
  // precision, which are those of each device's library.
  bool exact = false;
  // Runs the kernel on a device and returns its outputs. The operands are the same on every device.
  Result<std::vector<float>> (*run)(cuda::Device& device, uint64_t seed) = nullptr;
};

// Cases for every kind of kernel.
std::vector<GpuCase> GpuCases();

// The largest difference of two outputs, divided by the largest magnitude in them. NaN if an
// element is a number in only one of them, or if the sizes differ.
double LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

// A product of bf16 that is timed: m rows, weights [n, k].
struct GemmShape {
  int32_t m = 0, n = 0, k = 0;
};
// The seconds that one product takes, measured over `repetitions` products in a row. Each product
// has other weights, as far as 1 GiB holds them, so that no cache holds the weights.
Result<double> TimeGemm(cuda::Device& device, const GemmShape& shape, int32_t repetitions);

}  // namespace skein
