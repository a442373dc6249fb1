#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_question.h"
#include "skein/request.h"

namespace skein {

// One prompt of a pass.
struct DecisionRow {
  Request request;
  // Counted in the answer's usage. Rows for calibration are not: their answers are cached.
  bool charged = true;
};

// The output of a row.
struct RowOutput {
  const ReadValues* read = nullptr;
  std::span<const float> prompt_logprobs;  // from PromptLogprobsSpec::start on
};

// How likely each option is, as natural logarithms up to a constant that all share.
struct OptionScores {
  std::vector<double> logprobs;  // [options], in the question's order
  // Probability that the model writes any of the options; unset where it is not known.
  std::optional<double> mass;
};

// How one question is read: rows of one pass, and what their outputs say.
struct QuestionReads {
  std::vector<DecisionRow> rows;  // at least one
  // The end of the first row's prompt that other questions on the input do not share; may be empty.
  std::string own_text;
  std::function<OptionScores(std::span<const RowOutput> outputs)> read;  // outputs [rows.size()]
};

// One way to ask a question and read its answer in one pass. The scores are a function of the
// question alone: the same bits whatever else the pass holds. Thread-compatible; made for one HTTP
// request.
class QuestionReading {
 public:
  virtual ~QuestionReading() = default;
  // kInvalidArgument for a question that this reading cannot put to the model; the message begins
  // behind the question's field. kUnsupported, with the param, for a model that lacks something.
  virtual Result<QuestionReads> Plan(const AskedQuestion& asked) const = 0;
};

}  // namespace skein
