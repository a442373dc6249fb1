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
// is none, unless local layers have a rope of their own. Fails as LoadModelConfig does.
Status ReadWindow(const JsonObject& json, const DecoderFamily& family, ModelConfig* config);

// Reads `layer_types`, where it is there: whether each layer has a window. A type other than
// "full_attention" and "sliding_attention" is kUnsupported, by name.
Result<std::optional<std::vector<bool>>> ReadLayerTypes(const JsonObject& json, int32_t num_layers);

}  // namespace skein
