#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"
#include "model/config/decoder_family.h"

namespace skein {

// Reads which layers of a decoder have a sliding window, and its size: `sliding_window`,
// `layer_types` and the members of the family's rule. A window that hides no key within the context
// is ignored, unless local layers have their own rope. Fails as LoadModelConfig does.
Status ReadWindow(const JsonObject& json, const DecoderFamily& family, ModelConfig* config);

// Reads `layer_types`, if there is one: whether each layer has a window. Fails with kUnsupported,
// naming the type, for a type other than "full_attention" and "sliding_attention".
Result<std::optional<std::vector<bool>>> ReadLayerTypes(const JsonObject& json, int32_t num_layers);

}  // namespace skein
