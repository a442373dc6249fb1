#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_reads.h"
#include "server/json/json.h"
#include "server/model_registry.h"

namespace skein {

// Makes the requests that read a task's answers from the head of a decision model: one pass over
// the state and each question. Errors name the question's field, or a field that decision models do
// not take. REQUIRES: model.traits.decision_model.
Result<DecisionPlan> PlanHeadDecisions(const ModelEntry& model, const DecisionTask& task);

// An answer and the usage in the form of the model's own server, with four decimals. `ids`: the
// questions' names. Laya's `confidence` is 1 - entropy / (entropy of equal probabilities); its
// `x_jev_confidence` is computed as other models' confidence.
Json HeadAnswerJson(const DecisionModelTraits& traits, const DecisionQuestion& question,
                    const MethodAnswer& read, bool diagnostics);
Json HeadUsageJson(const DecisionModelTraits& traits, const HeadUsage& usage, int64_t input_tokens,
                   const std::vector<std::string>& ids);

// {reading: "head", temperature}.
Json HeadDiagnosticsJson(const DecisionMethod& method);

}  // namespace skein
