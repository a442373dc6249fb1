#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// A member that only descriptions of GGUF files have: such files lack the scorer of the actions.
inline constexpr char kNoActionHead[] = "has_no_action_head";
inline constexpr char kLayaConfigFile[] = "rl_agent_config.json";

// rl_agent_config.json of a Laya directory: a decision model with an encoder and a head.
struct LayaConfig {
  int32_t head_layers = 0;
  int32_t num_actions = 1;                        // 0: the model has no scorer of them
  bool parallel = false;                          // options are read side by side
  int32_t max_len = 512;                          // tokens of a question with its state
  int32_t head_max_len = 192;                     // tokens of the question's part
  std::array<double, 3> temperature = {1, 1, 1};  // for a choice, a score and a noul
  // By type and number of options, such as "choice:3-5". A temperature found here is used instead
  // of `temperature`.
  std::map<std::string, double> temperature_by_options;
};

// Whether the directory holds a Laya model.
bool IsLayaDir(const std::string& model_dir);

// Reads rl_agent_config.json. As in the reference, temperatures outside [0.5, 5] are clamped, and a
// temperature that is not a number is 1. Fails with kInvalidArgument or kUnsupported, naming the
// member.
Result<LayaConfig> LoadLayaConfig(const std::string& model_dir);

// Checks that an encoder of this width and number of attention heads can have a decision head,
// whose own number of heads depends on the width alone. Returns the problem; empty: none.
std::string LayaHeadsProblem(int64_t width, int64_t num_heads);

// Adds the head to the config of its encoder. Fails with kUnsupported if the width of the encoder's
// attention heads differs from that of the head's.
Status AddLayaHead(const LayaConfig& laya, const JsonObject& encoder, ModelConfig* config);

}  // namespace skein
