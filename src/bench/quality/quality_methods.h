#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/quality_items.h"
#include "skein/decision_method.h"
#include "skein/model_traits.h"

namespace skein {

// One way to ask a model: a reading and a prompt.
struct QualityMethod {
  DecisionMethod method;  // at temperature 1
  // A model with a way of its own: a decision model, or of relevance an embedding, a cross-encoder
  // or a trained reranker. The request says neither reading nor prompt.
  bool own = false;
  bool by_head = false;       // a decision model's, at its own temperatures
  bool probabilities = true;  // false: its scores are cosines

  std::string name() const;  // "words+calibrated/cue", "head", "own"
};

// The methods that fit a model and a type of question, in the order in which they are told.
// `has_chat_template` false: the prompt chat equals question and is left out. Permuted readings are
// for choices alone: other options are never permuted.
std::vector<QualityMethod> QualityMethodsFor(const ModelTraits& traits, bool has_chat_template,
                                             QualityType type);

// Which methods to measure, read from READING[/PROMPT],...; empty: all.
struct MethodFilter {
  struct Entry {
    NamedReading reading;
    std::optional<PromptForm> prompt;  // unset: all
  };
  std::vector<Entry> entries;
};
// kInvalidArgument lists what is allowed.
Result<MethodFilter> ParseMethodFilter(const std::string& list);
// Those that the filter names, in their order; a model's own way is always kept.
std::vector<QualityMethod> Filtered(std::vector<QualityMethod> methods, const MethodFilter& filter);

}  // namespace skein
