#pragma once

#include <nlohmann/json.hpp>

#include "apps/gguf/gguf_architecture.h"
#include "base/result.h"
#include "io/gguf_model.h"

namespace skein {

inline constexpr char kGgufBert[] = "bert";  // also of RoBERTa, XLM-RoBERTa and DistilBERT
inline constexpr char kGgufNomicBert[] = "nomic-bert";
inline constexpr char kGgufModernBert[] = "modern-bert";

// Makes the config.json of an encoder, without its special tokens. Its weights have the type that
// most elements of the file have: f32, f16 or, for any other, bf16. A file with the tensor
// cls.output is a classifier with the file's labels. Errors name the metadata key or the tensor.
// Two kinds of classifiers are kUnsupported, since they would give other scores than the original
// model: those without the layer in front of the last one, which llama.cpp's converter drops from
// BERT's classifiers, and those of DistilBERT, whose head has another activation.
Result<nlohmann::ordered_json> GgufEncoderConfigJson(const GgufModel& file,
                                                     const GgufArchitecture& architecture);

}  // namespace skein
