#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads the config.json of NomicBERT or GTE, in the spelling of the published files or in that of
// transformers: BERT with rope in place of learned positions, and with a gate in the MLP.
// kUnsupported, by name: features that the published models lack (biases of NomicBERT, norms before
// attention, experts, rope over a part of a head).
Status ReadRotatingBertConfig(const JsonObject& json, ModelConfig* config);

}  // namespace skein
