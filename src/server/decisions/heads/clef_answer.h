#pragma once

#include "server/decisions/decision_question.h"
#include "server/decisions/decision_reads.h"
#include "server/json/json.h"

namespace skein {

// An answer in the form of Clef's own code, with four decimals. `confidence` is the largest
// probability. The legend of a score has the levels as the client wrote them.
Json ClefAnswerJson(const DecisionQuestion& question, const MethodAnswer& read);

}  // namespace skein
