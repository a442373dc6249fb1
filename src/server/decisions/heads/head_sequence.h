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

// The tokens of one question about a state, in the format on which a decision model was trained.
struct HeadSequence {
  std::vector<TokenId> ids;
  // Positions whose outputs are read, in the model's order of options.
  std::vector<int32_t> markers;
  std::vector<int32_t> option_bounds;  // DecideSpec::option_bounds
  int32_t summary = 0;                 // DecideSpec::summary
  int32_t num_shared = 0;        // tokens at the beginning that all questions about a state share
  int32_t state_tokens = 0;      // of the state, after it was cut to the room
  int32_t distinct_options = 0;  // options that still differ after they were cut
  std::optional<int32_t>
      option_limit;  // tokens of an option, marker included, if the budget cut it
};

// The number of a question's type in decision models: choice 0, score 1, predicate 2.
int32_t TypeIndex(DecisionKind kind);

// The key under which decision models store temperatures and thresholds: the type of a question and
// its number of options, as in "choice:3-5".
std::string OptionBucket(const DecisionQuestion& question);

// Finds a special token of a model. kInvalidArgument if the tokenizer does not have it.
Result<TokenId> FindSpecialToken(const ModelEntry& model, std::string_view text);

// Appends the tokens of a text to `ids`. Special tokens in the text are read as tokens unless the
// server reads those of users as plain text. kInvalidArgument for invalid UTF-8.
Status EncodeForHead(const ModelEntry& model, std::string_view text, std::vector<TokenId>* ids);

// The number of options that differ in their tokens.
int32_t CountDistinct(const std::vector<std::vector<TokenId>>& options);

// "label: description", or the label alone if there is no description.
std::string LabelledText(const std::string& label, const std::string& description);

}  // namespace skein
