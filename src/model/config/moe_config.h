#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"
#include "model/config/decoder_family.h"

namespace skein {

// Reads the members of a mixture of experts that other decoders lack. Fails as LoadModelConfig
// does. REQUIRES: family.experts.exist.
Status ReadMoeConfig(const JsonObject& json, const DecoderFamily& family, ModelConfig* config);

}  // namespace skein
