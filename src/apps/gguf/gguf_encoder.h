#pragma once

#include <nlohmann/json.hpp>

#include "apps/gguf/gguf_architecture.h"
#include "apps/gguf/gguf_keys.h"
#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

inline constexpr char kGgufClasses[] = "cls.output.weight";  // the last layer of a classifier
inline constexpr char kGgufBert[] = "bert";  // also of RoBERTa, XLM-RoBERTa and DistilBERT
inline constexpr char kGgufNomicBert[] = "nomic-bert";
inline constexpr char kGgufModernBert[] = "modern-bert";

// Adds the names of a classifier's classes: the file's, else LABEL_0, LABEL_1, ...
Status ReadGgufLabels(const GgufModel& file, const GgufKeys& keys, nlohmann::ordered_json* config);

// Makes the config.json of an encoder, without its special tokens. Its weights have the type that
// most elements of the file have: f32, f16 or, for any other, bf16. A file with the tensor
// cls.output is a classifier with the file's labels. Errors name the metadata key or the tensor.
// kUnsupported for a classifier without the layer in front of its last one, since llama.cpp's
// converter leaves BERT's out, and for DistilBERT's, whose head has another activation: both would
// give other scores than the model.
Result<nlohmann::ordered_json> GgufEncoderConfigJson(const GgufModel& file,
                                                     const GgufArchitecture& architecture);

}  // namespace skein
