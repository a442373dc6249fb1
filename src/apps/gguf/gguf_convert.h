#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "io/model_files.h"

namespace skein {

struct GgufConvertOptions {
  std::string file;
  std::string dir;             // created; must be empty unless `force` is set
  std::string adapter_dir;     // a LoRA adapter to merge (io/lora_adapter.h); empty: none
  DType dtype = DType::kBf16;  // of the weights: kBf16 or kF32
  bool force = false;          // replace model files in `dir`
  LoadProgress progress;       // called with the bytes written and their total; may be empty
};

struct GgufConvertSummary {
  int64_t num_parameters = 0;
  int64_t weight_bytes = 0;
};

// To be raised when the same input gives another directory than before.
inline constexpr int kGgufConverterVersion = 2;

// Writes the model of a GGUF file as a HuggingFace directory: weights, tokenizer with chat
// template, generation_config.json and, last, config.json; so an interrupted run leaves no
// directory that passes for a model. Weights are dequantized to f32, the adapter is added, and the
// sum is rounded once. Fails, by name, for an architecture or tokenizer that is not known, for a
// tensor that is missing, unknown or of another shape, for an adapter that does not fit, for an
// encoder and for a decision model.
Result<GgufConvertSummary> ConvertGguf(const GgufConvertOptions& options);

// Writes the same files, except the weights, into the existing directory `dir`. If the GGUF file is
// put there as model.gguf, the directory is a model directory.
Status WriteGgufDescription(const std::string& file, const std::string& dir);

}  // namespace skein
