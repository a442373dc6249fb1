#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// The texts of a question, as the model was trained to read them. Words in braces are placeholders:
// {instructions}, {label}, {description}, {index}, {level}.
struct SysonePrompt {
  std::array<std::string, 3> task_lines;  // for a choice, a score and a noul
  std::string question;
  std::string choice_option, score_option;
  std::array<std::string, 2> noul_labels;  // no, yes
};

// config.json of a directory that the package sysone writes. It describes a decision model: a base
// model, which is in another directory, changes of its weights, and a compact head.
struct SysoneConfig {
  std::string architecture;  // the base model's model_type
  std::string base_dir;
  bool parallel = false;  // options are read side by side
  int32_t num_layers = 0;
  int32_t hidden_size = 0;
  int32_t head_width = 0, head_layers = 0;
  std::array<int32_t, 3> type_rows = {};  // in the type embedding, of a choice, a score and a noul
  int32_t num_type_rows = 0;
  int32_t max_state_tokens = 0;
  int32_t max_option_tokens = 0;
  int32_t max_len = 0;                            // tokens of a question with its state
  std::array<double, 3> temperature = {1, 1, 1};  // for a choice, a score and a noul
  // By type and number of options, such as "choice:3-5". A temperature found here is used instead
  // of `temperature`.
  std::map<std::string, double> temperature_by_options;
  SysonePrompt prompt;

  bool is_encoder() const { return architecture == "modernbert" || architecture == "eurobert"; }
};

// Whether the directory is a sysone directory: its config.json says format "sysone".
bool IsSysoneDir(const std::string& model_dir);

// Reads config.json and finds the base model: the folder `base` in the directory, else the model
// that the config names, as a directory or in the local HuggingFace cache. Fails with
// kInvalidArgument or kUnsupported, naming the member and what is allowed, or with kNotFound,
// saying where the base model was looked for.
Result<SysoneConfig> LoadSysoneConfig(const std::string& model_dir);

// Keeps the base's first layers and adds the head. `json` is the base's config.json. Fails with
// kUnsupported if the attention heads of the head are wider than kMaxHeadDim.
Status AddSysoneHead(const SysoneConfig& sysone, const JsonObject& json, ModelConfig* config);

}  // namespace skein
