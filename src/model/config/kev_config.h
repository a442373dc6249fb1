#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/config/config.h"

namespace skein {

// head.pt of a Kev directory: a decision model with a decoder and a pointer head. The decoder's
// weights are in the same directory. Or they are a base model's weights, changed by the adapter in
// the directory.
struct KevConfig {
  std::string base_dir;      // of the decoder's config, weights and tokenizer
  bool has_adapter = false;  // the directory's adapter changes the base's weights
  int32_t head_width = 0;
  double temperature = 1;  // for all questions
};

inline constexpr char kKevHeadFile[] = "head.pt";

// Whether the directory is a Kev directory.
bool IsKevDir(const std::string& model_dir);

// Reads head.pt and finds the decoder. Fails with kInvalidArgument or kUnsupported, naming the
// member and what is allowed, or with kNotFound, saying where the base model was looked for.
Result<KevConfig> LoadKevConfig(const std::string& model_dir);

// Adds the head to the config. Fails with kUnsupported if the model is not a decoder on which Kev
// is trained.
Status AddKevHead(const KevConfig& kev, ModelConfig* config);

}  // namespace skein
