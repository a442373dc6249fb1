#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"
#include "model/config/encoders/colbert_config.h"
#include "model/dense_module.h"
#include "model/pooling.h"
#include "skein/choice_names.h"
#include "skein/model_traits.h"

namespace skein {

struct ModelUse {
  ModelTraits traits;
  Pooling pooling = Pooling::kLast;  // of embeddings
  std::vector<DenseModule> dense;    // applied after the pooling, or to each token's state
  // Set for a ColBERT model, whose traits still lack the ids of its tokens (SetLateInteraction).
  std::optional<ColbertConfig> colbert;
  // max_seq_length of sentence-transformers: longer inputs were cut when the model was trained. 0:
  // not given.
  int32_t max_seq_length = 0;
};

// The template for the pairs of a rerank request.
enum class RerankTemplate {
  kAuto,   // Qwen3-Reranker's template if the model's name says that it is one
  kQwen3,  // Qwen3-Reranker's template
  kNone,
};
template <>
inline constexpr auto kChoiceNames<RerankTemplate> =
    std::to_array<ChoiceName<RerankTemplate>>({{"auto", RerankTemplate::kAuto},
                                               {"qwen3", RerankTemplate::kQwen3},
                                               {"none", RerankTemplate::kNone}});

// Sets the template for pairs. kInvalidArgument for kQwen3 if the model is not a decoder with an
// output matrix or a classification head.
Status SetRerankTemplate(RerankTemplate option, const ModelConfig& config, ModelTraits* traits);

// Finds out from a model's directory for what the model can be used: from the labels in config.json
// and the files of sentence-transformers (modules.json, config_sentence_transformers.json,
// sentence_bert_config.json). `name` is the model's name: among Qwen3's models, only names tell
// which is a reranker and which allows embeddings of any size. `pooling` replaces the pooling of
// the files; with it, a language model without these files gives embeddings. Fails with
// kUnsupported, naming the module, if this engine does not support a module. Fails with
// kInvalidArgument for a malformed file, or for a pooling of a model that gives classes.
Result<ModelUse> LoadModelTraits(const std::string& model_dir, const std::string& name,
                                 const ModelConfig& config,
                                 std::optional<Pooling> pooling = std::nullopt);

}  // namespace skein
