#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace skein {

// A matrix product [m, n] = [m, k] · [n, k]^T of a model.
struct ProductToMeasure {
  std::string model;
  std::string name;
  int32_t n = 0;
  int32_t k = 0;
  bool swiglu = false;    // n columns of weights, gate and up: half as many results
  bool residual = false;  // adds to what is there
  bool tiles = false;     // on the matrix unit rows come in tiles, and so do results of swiglu
  // Positive: the results are heads, which a thread takes on from its cache; n is so many of them.
  int32_t head_dim = 0;
};

// qkv, o, gate_up, down and output of Qwen3-0.6B and Qwen3-4B.
std::vector<ProductToMeasure> QwenProducts();

struct KernelBenchOptions {
  std::vector<ProductToMeasure> products = QwenProducts();
  std::vector<int32_t> rows = {1, 4, 16, 128, 512, 2048};
  DType dtype = DType::kBf16;  // of the weights: or kInt8
  int num_samples =
      7;            // of each figure, in turn with the limits and the peer; medians are reported
  int threads = 0;  // 0: all processors
  size_t weight_bytes = size_t{256} << 20;  // copies of the weights to walk through, at least
};

// The products of a forward pass, cut into the same tickets over a team of threads, with weights
// that come from memory as they do there, beside what the machine can do and, where built in,
// oneDNN. Result: {"limits": {"compute_tflops", "read_gbps"} (medians of all that was measured),
// "isa", "threads", "gemm": [{"model", "name", "m", "k", "n", "dtype", "tflops", "gbps" (weights
// read), "fraction" (of the roofline of the limits measured beside each sample), "onednn_tflops",
// "onednn_dtype" (bench/kernels/onednn.h; null without it and beside int8)}], "draws"
// (bench/kernels/draws.h)}. kInvalidArgument where rows and results do not fit the free memory.
Result<nlohmann::ordered_json> RunKernelBench(const KernelBenchOptions& options);

}  // namespace skein
