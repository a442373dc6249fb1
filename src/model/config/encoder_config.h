#pragma once

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads what a BERT-like encoder's config.json says beside its architecture, which *config has.
// Fails as LoadModelConfig does.
Status ReadEncoderConfig(const JsonObject& json, ModelConfig* config);

// The number of classes of a ForSequenceClassification config: that of id2label, else num_labels,
// else the 2 that the reference library takes where a file says neither.
Result<int32_t> ReadNumClasses(const JsonObject& json);

}  // namespace skein
