#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

// Whether a line of labelled data is a row in the form in which decision models are trained:
//
//   {"state": ..., "questions": {id: question of /v1/systemone}, "expected": {id: answer}}
//
// `gold`, with probabilities of the answers, may stand for `expected`, or a `label` in a question.
bool IsLabelledRow(const Json& line);

// The items of a row in the form of bench/quality/README.md, one for each question with an answer;
// its task is the question's id. `number`: of the line, for the items' ids. kInvalidArgument names
// the field and what is allowed.
Result<std::vector<Json>> ItemsOfRow(const Json& row, size_t number);

}  // namespace skein
