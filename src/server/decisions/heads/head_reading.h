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

// The requests that read a task's answers from the head of a decision model: one pass over each
// question with the state. Errors name the question's field, or the member that such a model does
// not take. REQUIRES: model.traits.decision_model.
Result<DecisionPlan> PlanHeadDecisions(const ModelEntry& model, const DecisionTask& task);

// An answer and the usage in the form of the model's own server, with four decimals. `ids`: the
// questions' names. Laya's `confidence` is one less the entropy over that of equal probabilities,
// and its `x_jev_confidence` the confidence of other models.
Json HeadAnswerJson(const DecisionModelTraits& traits, const DecisionQuestion& question,
                    const MethodAnswer& read, bool diagnostics);
Json HeadUsageJson(const DecisionModelTraits& traits, const HeadUsage& usage, int64_t input_tokens,
                   const std::vector<std::string>& ids);

// {reading: "head", temperature}.
Json HeadDiagnosticsJson(const DecisionMethod& method);

}  // namespace skein
