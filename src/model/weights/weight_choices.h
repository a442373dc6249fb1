#pragma once

namespace skein {

// The requested compute type.
enum class ComputeChoice {
  kAuto,  // f32 for f32 files, else bf16; with a warning for f16 files
  kBf16,
  kF32,
};

// The requested form of the weights.
enum class Quantization {
  kAuto,  // packed if the file has blocks (GGUF) or integers; everything else in the compute type
  kNone,  // the compute type
  kInt8,  // one scale for a row
  kQ8_0,  // 8 bits with a scale for each block of 32
  kInt4,  // Q4_0: 4 bits with a scale for each block of 32
};

// The requested type of the KV cache.
enum class KvCacheType {
  kAuto,  // the compute type
  kInt8,
};

}  // namespace skein
