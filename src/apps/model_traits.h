#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/config.h"
#include "model/pooling.h"
#include "skein/model_traits.h"

namespace skein {

struct ModelUse {
  ModelTraits traits;
  Pooling pooling = Pooling::kLast;  // of embeddings
  // sentence-transformers' max_seq_length: longer inputs were cut when the model was taught. 0: not
  // stated.
  int32_t max_seq_length = 0;
};

// What a model directory says its model is for: the labels of its config.json, and the files of
// sentence-transformers (modules.json, config_sentence_transformers.json,
// sentence_bert_config.json). `name` is what the model is called: one of Qwen3's is a reranker or
// has embeddings of any size by its name alone. Fails with kUnsupported, by name, for a module that
// this engine would leave out, and with kInvalidArgument for a file that is not what it should be.
Result<ModelUse> LoadModelTraits(const std::string& model_dir, const std::string& name,
                                 const ModelConfig& config);

}  // namespace skein
