#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "model/config/config.h"

namespace skein {

// head.pt of a Kev directory: a decision model of a decoder and a pointer head. The decoder's
// weights lie in the same directory, or are a base model's with the directory's adapter. A
// directory that describes a GGUF file has kKevHeadJson in its place, and the file has the head.
struct KevConfig {
  std::string base_dir;      // of the decoder's config, weights and tokenizer
  bool has_adapter = false;  // the directory's adapter changes the base's weights
  int32_t head_width = 0;
  std::array<double, 3> temperature = {1, 1, 1};  // choice, score, noul
  // By type and number of options, such as "choice:3-5"; these go before `temperature`.
  std::map<std::string, double> temperature_by_options;
  bool is_gguf = false;
};

inline constexpr char kKevHeadFile[] = "head.pt";
inline constexpr char kKevHeadJson[] = "kev_head.json";

// Whether the directory is a Kev directory.
bool IsKevDir(const std::string& model_dir);

// Reads head.pt, or kKevHeadJson, and finds the decoder. kInvalidArgument or kUnsupported names the
// member and what is allowed; kNotFound says where the base model was looked for.
Result<KevConfig> LoadKevConfig(const std::string& model_dir);

// Adds the head to the config. Fails with kUnsupported if the model is not a decoder on which Kev
// is trained.
Status AddKevHead(const KevConfig& kev, ModelConfig* config);

}  // namespace skein
