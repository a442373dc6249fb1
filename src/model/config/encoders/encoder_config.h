#pragma once

#include <string>

#include "base/result.h"
#include "io/json_file.h"
#include "model/config/config.h"

namespace skein {

// Reads a BERT-like encoder's config.json into *config, in which the architecture is already set.
// Fails as LoadModelConfig does.
Status ReadEncoderConfig(const JsonObject& json, ModelConfig* config);

// Sets tensor_prefix to the one that the files in `model_dir` have: the encoder's own name, if they
// are those of a model with another head. Without files, or without the embedding among them, it
// stays as the architecture has it. Sets library_names, too.
Status FindTensorPrefix(const std::string& model_dir, ModelConfig* config);

// Reads the sizes that ModernBERT and DeBERTa name alike; contexts have at most `max_tokens`.
Status ReadEncoderSizes(const JsonObject& json, int64_t max_tokens, ModelConfig* config);

// Reads the name of an activation.
Status ReadActivation(const JsonObject& json, const char* key, Activation* out);

// Reads a required epsilon in (0, 1).
Status ReadEpsilon(const JsonObject& json, const char* key, float* out);

// Reads type_vocab_size, the number of rows that a token's segment chooses from; 0: no such table.
Status ReadNumSegments(const JsonObject& json, ModelConfig* config);

// Reads the number of classes of a ForSequenceClassification config: the size of id2label, else
// num_labels, else 2 (the default of the reference library).
Result<int32_t> ReadNumClasses(const JsonObject& json);

}  // namespace skein
