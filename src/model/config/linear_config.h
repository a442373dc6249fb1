#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"
#include "model/config/decoder_family.h"

namespace skein {

// Reads which layers are linear, the shapes of these layers, and the gate of the other layers:
// `layer_types` or `full_attention_interval`, `linear_*`, `attn_output_gate`. Fails with
// kUnsupported, naming the shape, if the kernels lack a shape.
Status ReadLinearLayers(const JsonObject& json, const DecoderFamily& family, ModelConfig* config);

}  // namespace skein
