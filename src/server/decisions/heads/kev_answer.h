#pragma once

#include <cstdint>

#include "server/decisions/decision_question.h"
#include "server/decisions/decision_reads.h"
#include "server/json/json.h"
#include "text/tokenizer.h"

namespace skein {

// An answer in the form of Kev's own server, with two decimals. The confidence of a score is 1 -
// (mean distance from the most likely level) / (the largest distance).
Json KevAnswerJson(const DecisionQuestion& question, const MethodAnswer& read);

// The number of tokens of the answers as Kev's own server writes them, which it reports as output
// tokens.
int64_t KevOutputTokens(const Tokenizer& tokenizer, const Json& answers);

}  // namespace skein
