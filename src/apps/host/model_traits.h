#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"
#include "model/dense_module.h"
#include "model/pooling.h"
#include "skein/choice_names.h"
#include "skein/model_traits.h"

namespace skein {

struct ModelUse {
  ModelTraits traits;
  Pooling pooling = Pooling::kLast;  // of embeddings
  std::vector<DenseModule> dense;    // behind it
  // sentence-transformers' max_seq_length: longer inputs were cut when the model was taught. 0: not
  // stated.
  int32_t max_seq_length = 0;
};

// The template that the pairs of a rerank get.
enum class RerankTemplate {
  kAuto,   // Qwen3-Reranker's own if the model's name says that it is one
  kQwen3,  // that template
  kNone,
};
template <>
inline constexpr auto kChoiceNames<RerankTemplate> =
    std::to_array<ChoiceName<RerankTemplate>>({{"auto", RerankTemplate::kAuto},
                                               {"qwen3", RerankTemplate::kQwen3},
                                               {"none", RerankTemplate::kNone}});

// Fails with kInvalidArgument for kQwen3 if the model is no decoder that has an output matrix or a
// classification head.
Status SetRerankTemplate(RerankTemplate option, const ModelConfig& config, ModelTraits* traits);

// The uses of a model by its directory: the labels of its config.json, and the files of
// sentence-transformers (modules.json, config_sentence_transformers.json,
// sentence_bert_config.json). `name` is the model's name: among Qwen3's models only names tell a
// reranker, and embeddings of any size. `pooling` replaces the pooling of the files; a language
// model without such files embeds by it alone. Fails with kUnsupported, by name, for a module that
// this engine would leave out. Fails with kInvalidArgument for a malformed file, or for a pooling
// of a model that gives classes.
Result<ModelUse> LoadModelTraits(const std::string& model_dir, const std::string& name,
                                 const ModelConfig& config,
                                 std::optional<Pooling> pooling = std::nullopt);

}  // namespace skein
