#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"
#include "model/config/decoder_family.h"

namespace skein {

// Skein's own member of a config: whether the weights are those of a GGUF file, which has the heads
// of v in another order (LinearLayers::tiled_v_heads).
inline constexpr char kTiledValueHeads[] = "linear_value_heads_are_tiled";

// Skein's own member of a config: whether the weights are those of a GGUF file of Qwen3-Next that
// has q, k, v in one matrix and z in another one (LinearLayers::fused_qkvz).
inline constexpr char kSplitLinearInputs[] = "linear_inputs_are_split";

// Reads which layers are linear, the shapes of these, and the gate of the others: `layer_types` or
// `full_attention_interval`, `linear_*`, `attn_output_gate`. A shape that the kernels lack is
// kUnsupported, by name.
Status ReadLinearLayers(const JsonObject& json, const DecoderFamily& family, ModelConfig* config);

}  // namespace skein
