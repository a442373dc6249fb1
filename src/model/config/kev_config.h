#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/config/config.h"

namespace skein {

// head.pt of a Kev directory: a decision model of a decoder and a pointer head. The decoder's
// weights lie in the same directory, or are a base model's with the directory's adapter.
struct KevConfig {
  std::string base_dir;      // of the decoder's config, weights and tokenizer
  bool has_adapter = false;  // the directory's changes the base's weights
  int32_t head_width = 0;
  double temperature = 1;  // of all questions
};

inline constexpr char kKevHeadFile[] = "head.pt";

// Whether the directory holds such a model.
bool IsKevDir(const std::string& model_dir);

// Reads head.pt and finds the decoder. kInvalidArgument or kUnsupported names the member and what
// is allowed; kNotFound says where the base model was looked for.
Result<KevConfig> LoadKevConfig(const std::string& model_dir);

// Adds the head. kUnsupported if the model is no decoder that Kev is trained on.
Status AddKevHead(const KevConfig& kev, ModelConfig* config);

}  // namespace skein
