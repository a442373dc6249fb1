#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// The tokens of one question about a state, as a decision model was taught to read them.
struct HeadSequence {
  std::vector<TokenId> ids;
  std::vector<int32_t> markers;  // the positions that are read, in the model's order of options
  std::vector<int32_t> option_bounds;  // DecideSpec::option_bounds
  int32_t summary = 0;                 // DecideSpec::summary
  int32_t num_shared = 0;              // tokens at the head that all questions on a state share
  int32_t state_tokens = 0;            // of the state, as far as there was room
  int32_t distinct_options = 0;        // options that still differ after they were cut
  std::optional<int32_t>
      option_limit;  // tokens of an option if the budget cut them, marker included
};

// The number that decision models have for a type of question: choice 0, score 1, predicate 2.
int32_t TypeIndex(DecisionKind kind);

// The type and the number of options of a question, as decision models keep temperatures and
// thresholds by them: "choice:3-5".
std::string OptionBucket(const DecisionQuestion& question);

// A special token of a model. kInvalidArgument if its tokenizer does not have it.
Result<TokenId> FindSpecialToken(const ModelEntry& model, std::string_view text);

// Appends the tokens of a text to `ids`. Special tokens in it are tokens unless the server reads
// those of users as plain text. kInvalidArgument for invalid UTF-8.
Status EncodeForHead(const ModelEntry& model, std::string_view text, std::vector<TokenId>* ids);

// The number of options whose tokens differ.
int32_t CountDistinct(const std::vector<std::vector<TokenId>>& options);

// "label: description", or the label alone without one.
std::string LabelledText(const std::string& label, const std::string& description);

}  // namespace skein
