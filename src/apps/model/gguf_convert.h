#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "io/model_files.h"

namespace skein {

struct GgufConvertOptions {
  std::string file;
  std::string dir;             // created; must be empty unless `force`
  std::string adapter_dir;     // a LoRA adapter to merge (io/lora_adapter.h); empty: none
  DType dtype = DType::kBf16;  // of the weights, or kF32
  bool force = false;          // replace the model files that are in `dir`
  LoadProgress progress;       // bytes written, of how many; may be empty
};

struct GgufConvertSummary {
  int64_t num_parameters = 0;
  int64_t weight_bytes = 0;
};

// Raised when the same input gives another directory.
inline constexpr int kGgufConverterVersion = 1;

// Writes the model of a GGUF file as a HuggingFace directory: weights, tokenizer with chat
// template, generation_config.json and, last, config.json; so an interrupted run leaves no
// directory that passes for a model. Weights are dequantized to f32, the adapter is added, and the
// sum is rounded once. Fails, by name, for an architecture or tokenizer that is not known, for a
// tensor that is missing, unknown or of another shape, and for an adapter that does not fit.
Result<GgufConvertSummary> ConvertGguf(const GgufConvertOptions& options);

// Writes the same without weights into `dir`, which is there: the file beside it as model.gguf
// makes it a model directory.
Status WriteGgufDescription(const std::string& file, const std::string& dir);

}  // namespace skein
