#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/blocks/block_format.h"
#include "base/dtype.h"
#include "base/result.h"

namespace skein {

// A matrix product [m, n] = [m, k] · [n, k]^T of a model.
struct ProductToMeasure {
  std::string model;
  std::string name;
  int32_t n = 0;
  int32_t k = 0;
  bool swiglu = false;    // n columns of weights, half of gate and half of up: n / 2 results
  bool residual = false;  // results are added to the contents of the output
  bool tiles = false;  // on the matrix unit, the rows are in tiles; so are the results with swiglu
  // If positive, the results are heads of this size, which a thread processes further from its
  // cache.
  int32_t head_dim = 0;
};

// The products qkv, o, gate_up, down and output of Qwen3-0.6B and Qwen3-4B.
std::vector<ProductToMeasure> QwenProducts();

struct KernelBenchOptions {
  std::vector<ProductToMeasure> products = QwenProducts();
  std::vector<int32_t> rows = {1, 4, 16, 128, 512, 2048};
  DType dtype = DType::kBf16;               // of the weights: kBf16, kInt8 or kBlocks
  BlockFormat format = BlockFormat::kQ4_0;  // of blocks; one that QuantizeBlocks can write
  int num_samples =
      7;  // samples of each figure, alternating with the limits and oneDNN; medians are reported
  int threads = 0;  // 0: one per processor
  // The copies of the weights have at least this size together.
  size_t weight_bytes = size_t{256} << 20;
};

// Times the matrix products of a forward pass. They are divided into the same tickets over a team
// of threads, and the weights come from memory, as in a forward pass. Measures the limits of the
// machine at the same time and, if it was built in, the same products in oneDNN. Result: {"limits":
// {"compute_tflops", "read_gbps"} (medians of all measurements), "isa", "threads", "gemm":
// [{"model", "name", "m", "k", "n", "dtype", "tflops", "gbps" (of weights that were read),
// "fraction" (of the roofline by the limits measured beside each sample), "onednn_tflops",
// "onednn_dtype" (bench/kernels/onednn.h; null without oneDNN and for other types than bf16)}],
// "draws" (bench/kernels/draws.h)}. The dtype of blocks is the name of their format.
// kInvalidArgument if rows and results do not fit the free memory.
Result<nlohmann::ordered_json> RunKernelBench(const KernelBenchOptions& options);

}  // namespace skein
