#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// rl_agent_config.json of a Laya directory: a decision model of an encoder and a head.
struct LayaConfig {
  int32_t head_layers = 0;
  int32_t num_actions = 1;
  bool parallel = false;                          // options are read side by side
  int32_t max_len = 512;                          // tokens of a question with its state
  int32_t head_max_len = 192;                     // tokens of the question's part
  std::array<double, 3> temperature = {1, 1, 1};  // choice, score, noul
  // By type and number of options, such as "choice:3-5"; these go before `temperature`.
  std::map<std::string, double> temperature_by_options;
};

// Whether the directory holds a Laya model.
bool IsLayaDir(const std::string& model_dir);

// Reads rl_agent_config.json. Temperatures outside [0.5, 5] are clamped, and others than numbers
// are 1, as the reference does. kInvalidArgument or kUnsupported names the member.
Result<LayaConfig> LoadLayaConfig(const std::string& model_dir);

// Adds the head to the config of its encoder. kUnsupported for an encoder whose heads are of
// another width than the head's.
Status AddLayaHead(const LayaConfig& laya, const JsonObject& encoder, ModelConfig* config);

}  // namespace skein
