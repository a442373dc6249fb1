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

// One prompt that is computed for a reading.
struct DecisionRow {
  Request request;
  // Whether the answer's usage counts the row. Rows for calibration are not counted: their answers
  // are cached.
  bool charged = true;
};

// The output computed for a row.
struct RowOutput {
  const ReadValues* read = nullptr;
  std::span<const float> prompt_logprobs;  // from PromptLogprobsSpec::start on
};

// How likely each option is, as natural logarithms up to a common constant.
struct OptionScores {
  std::vector<double> logprobs;  // [options], in the question's order
  // The probability that the model's next text is one of the options; unset if it is not known.
  std::optional<double> mass;
};

// How one question is read: the rows to compute, and the function that turns their outputs into
// scores.
struct QuestionReads {
  std::vector<DecisionRow> rows;  // at least one
  // The end of the first row's prompt, which other questions on the input do not share; may be
  // empty.
  std::string own_text;
  std::function<OptionScores(std::span<const RowOutput> outputs)> read;  // outputs [rows.size()]
};

// One way to ask a question and to read its answer in one pass of the model. The scores depend on
// the question alone: other rows in the pass do not change their bits. Thread-compatible; made for
// one HTTP request.
class QuestionReading {
 public:
  virtual ~QuestionReading() = default;
  // kInvalidArgument for a question that this reading cannot put to the model; the caller puts the
  // name of the question's field before the message. kUnsupported, with the param, if the model
  // lacks a feature.
  virtual Result<QuestionReads> Plan(const AskedQuestion& asked) const = 0;
};

}  // namespace skein
