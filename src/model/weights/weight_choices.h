#pragma once

namespace skein {

// The compute type that is asked for.
enum class ComputeChoice {
  kAuto,  // f32 for f32 files, else bf16; a warning for f16 files
  kBf16,
  kF32,
};

// The weights that are asked for.
enum class Quantization {
  kAuto,  // blocks of a GGUF file and integers of a checkpoint packed, all else in the compute type
  kNone,  // the compute type
  kInt8,
  kInt4,
};

}  // namespace skein
