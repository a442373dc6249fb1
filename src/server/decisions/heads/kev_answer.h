#pragma once

#include <cstdint>

#include "server/decisions/decision_question.h"
#include "server/decisions/decision_reads.h"
#include "server/json/json.h"
#include "text/tokenizer.h"

namespace skein {

// An answer in the form of Kev's own server, with two decimals. A score's confidence is one less
// the mean distance from the most likely level over the largest one.
Json KevAnswerJson(const DecisionQuestion& question, const MethodAnswer& read);

// The tokens of the answers as that server would write them, which it reports as output tokens.
int64_t KevOutputTokens(const Tokenizer& tokenizer, const Json& answers);

}  // namespace skein
