#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/quality/quality_items.h"
#include "skein/decision_method.h"
#include "skein/model_traits.h"

namespace skein {

// One way to ask a model: a reading together with a prompt.
struct QualityMethod {
  DecisionMethod method;  // temperature 1
  // The model's own method: that of a decision model or, for relevance, that of an embedding model,
  // a cross-encoder or a trained reranker. The request then has neither reading nor prompt.
  bool own = false;
  bool by_head = false;       // a decision model, which has its own temperatures
  bool probabilities = true;  // false: the scores are cosines

  std::string name() const;  // "words+calibrated/cue", "head", "own"
};

// The methods that suit a model and a type of question, in the order of the report. If
// `has_chat_template` is false, the prompt chat equals the prompt question and is left out.
// Permuted readings are only for choices: other options are never permuted.
std::vector<QualityMethod> QualityMethodsFor(const ModelTraits& traits, bool has_chat_template,
                                             QualityType type);

// The methods to measure, read from READING[/PROMPT],...; empty: all.
struct MethodFilter {
  struct Entry {
    NamedReading reading;
    std::optional<PromptForm> prompt;  // unset: all prompts
  };
  std::vector<Entry> entries;
};
// kInvalidArgument lists the allowed names.
Result<MethodFilter> ParseMethodFilter(const std::string& list);
// The methods that the filter names, in their original order. A model's own method is always kept.
std::vector<QualityMethod> Filtered(std::vector<QualityMethod> methods, const MethodFilter& filter);

}  // namespace skein
