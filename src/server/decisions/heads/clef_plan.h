#pragma once

#include "base/result.h"
#include "server/decisions/decision_reads.h"
#include "server/model_registry.h"

namespace skein {

// Makes the one request that reads all answers of a task from a Clef model:
//
//   system text, "STATE:" state | "SCHEMA FIELDS:", then for each question
//     "FIELD n", id, type, instructions, and its options as JSON | cue
//
// The model reads the tokens of instructions and options by their positions, so no text of a caller
// can pretend to be another part. A state that does not fit loses its end. Choices are in the order
// of their names, as in training; the answers are in the order of the request. Errors name the
// question's field. REQUIRES: a Clef model.
Result<DecisionPlan> PlanClefDecisions(const ModelEntry& model, const DecisionTask& task);

}  // namespace skein
