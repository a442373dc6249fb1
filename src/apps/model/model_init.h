#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "base/result.h"

namespace skein {

struct ModelInitOptions {
  std::string shape;          // a name of ModelShapes()
  int32_t num_layers = 0;     // the first layers of the shape, so many; 0: all
  std::string dir;            // created; must be empty unless `force` is set
  std::string tokenizer_dir;  // files to copy; empty: the byte tokenizer is used
  DType dtype = DType::kBf16;
  uint64_t seed = 0;
  int64_t max_shard_bytes = 5'000'000'000;  // > 0
  int num_threads = 1;                      // > 0
  bool force = false;                       // replace model files in `dir`
  bool show_progress = false;               // on standard error
};

struct ModelInitSummary {
  int64_t num_parameters = 0;
  int64_t weight_bytes = 0;
};

// Writes a random model with the shape of a real one as a complete HuggingFace directory: weights,
// tokenizer with chat template, generation_config.json and, last, config.json, so that an
// interrupted run leaves no directory that counts as a model.
Result<ModelInitSummary> InitModel(const ModelInitOptions& options);

}  // namespace skein
