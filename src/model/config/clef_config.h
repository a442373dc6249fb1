#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/config/config.h"

namespace skein {

// A Clef directory: a decoder, and beside it the config and the weights of a joint head.
inline constexpr char kClefConfigFile[] = "joint_head_config.json";
inline constexpr char kClefHeadFile[] = "joint_head.safetensors";
// The tokens of a prompt in the family's own code. A longer state is cut.
inline constexpr int32_t kClefMaxLen = 16384;

// Whether the directory is a Clef directory.
bool IsClefDir(const std::string& model_dir);

// Adds the head to the config of its decoder. kInvalidArgument or kUnsupported names the member of
// joint_head_config.json and what is allowed, or the decoder if it is not a Qwen3.5.
Status AddClefHead(const std::string& model_dir, ModelConfig* config);

}  // namespace skein
