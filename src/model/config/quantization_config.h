#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/json_file.h"

namespace skein {

// The form in which the file of a quantized checkpoint has the matrices. The embedding, the norms
// and any other matrix may be plain.
enum class QuantizationMethod : uint8_t {
  kNone,
  kGptq,     // GPTQ (Frantar et al. 2022), in the layout of AutoGPTQ: columns packed along k
  kAwq,      // AWQ (Lin et al. 2023), in the layout of AutoAWQ's "gemm": columns interleaved
  kPacked,   // compressed-tensors "pack-quantized": rows of 4 or 8 bits
  kInteger,  // compressed-tensors "int-quantized": rows of int8
  kFloat8,   // rows of FP8 E4M3, with scales for tensors, rows or blocks
  kMxfp4,    // the experts of gpt-oss (model/weights/fused_expert.h)
};

struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::kNone;
  int32_t bits = 0;                           // of an integer: 4 or 8
  bool zeros_are_one_less = false;            // GPTQ's first format stores zero points minus one
  int32_t block_rows = 0, block_columns = 0;  // of FP8's blocks; 0: no blocks
};

// Reads quantization_config, or compression_config, of a config.json. An empty or absent object
// gives kNone. Fails with kUnsupported, naming a method, format or width that is not implemented.
Result<QuantizationConfig> ReadQuantizationConfig(const JsonObject& config);

}  // namespace skein
