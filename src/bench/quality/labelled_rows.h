#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// Whether a line of labelled data is a row in the form of training data for decision models:
//
//   {"state": ..., "questions": {id: question of /v1/systemone}, "expected": {id: answer}}
//
// `gold`, with probabilities of the answers, may replace `expected`. So may a `label` in each
// question.
bool IsLabelledRow(const Json& line);

// Turns a row into items in the form of bench/quality/README.md: one for each question with an
// answer, with the question's id as its task. `number` is the line's number, which the items' ids
// contain. kInvalidArgument names the field and what is allowed.
Result<std::vector<Json>> ItemsOfRow(const Json& row, size_t number);

}  // namespace skein
