#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/decisions/decision_answer.h"
#include "server/decisions/decision_question.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "server/reads/read_session.h"
#include "skein/decision_method.h"
#include "skein/request.h"

namespace skein {

// The method that a request or an option asks for. The model's profile gives what is unset.
struct MethodOverride {
  std::optional<NamedReading> reading;
  std::optional<PromptForm> prompt;  // unset: the profile's, or that of another `reading`
  // 0: the profile's temperature and offset if the reading and the prompt are the profile's;
  // else 1.
  double temperature = 0;
};
// Reads `reading`, `prompt` and `temperature`; refuses unknown names.
MethodOverride ReadMethodOverride(FieldReader* reader);
DecisionMethod MethodOf(const DecisionMethod& profile, const MethodOverride& wanted);

// The fields that /v1/decisions and /v1/systemone share, read from the body.
struct DecisionOptions {
  Request base;  // scheduling fields
  MethodOverride method;
  bool diagnostics = true;      // tell how each answer came about
  bool exact_spelling = false;  // of words: an option's own text alone
  // Laya models: the most tokens of a question with its state, and of the question's part. 0:
  // the model's own.
  int32_t max_len = 0;
  int32_t head_max_len = 0;
};
DecisionOptions ReadDecisionOptions(const ModelEntry& model, FieldReader* reader);

// An input of `examples`, with the right option of each question.
struct DecisionExample {
  std::string input;
  std::vector<size_t> options;  // [questions]
};

struct DecisionTask {
  DecisionOptions options;
  std::string instructions;  // for all questions; may be empty
  std::string input;
  std::string input_field;  // where it came from, for messages
  bool keeps_end = false;   // a decision model cuts the beginning of an input that is too long
  std::vector<DecisionQuestion> questions;
  std::vector<std::string> question_fields;  // [questions.size()], for messages
  std::vector<DecisionExample> examples;
};

// An answer and how it was read.
struct MethodAnswer {
  DecisionAnswer answer;
  DecisionMethod method;
  bool by_head = false;  // of a decision model
  // The probability of the first action, which is to answer; only of a Laya model.
  std::optional<double> action_probability;
};

// The use that a decision model made of an input.
struct HeadUsage {
  struct OfQuestion {
    int64_t state_tokens_dropped = 0;
    int64_t num_options = 0;
    int64_t distinct_options = 0;
    std::optional<int32_t> option_limit;  // tokens to which options were cut
  };
  int64_t state_tokens = 0;
  std::vector<OfQuestion> questions;  // [task.questions.size()]
};

struct DecisionPlan {
  std::vector<Request> requests;
  std::vector<bool> charged;  // [requests.size()]: counted in the usage
  // The answers [task.questions.size()] that the outputs of `requests` say.
  std::function<std::vector<MethodAnswer>(const ReadResults& results)> answers;
  std::optional<HeadUsage> head_usage;  // of a decision model
};

// The requests that read `task`'s answers. Errors name the question's field.
Result<DecisionPlan> PlanDecisions(const ModelEntry& model, const DecisionTask& task);

// Reads `examples`: at most kExamplesMax objects {input, answers}. `input_of` reads an example's
// input, `options_of` its answers as indices of options; both know what they are relative to.
constexpr size_t kExamplesMax = 64;
Result<std::vector<DecisionExample>> ReadExamples(
    FieldReader* reader, const std::function<Result<std::string>(const Json& example)>& input_of,
    const std::function<Result<std::vector<size_t>>(const Json& answers)>& options_of);

// Warns in the log, at most once a minute, if the options of an answer have a small label mass.
void WarnOfSmallMass(const ModelEntry& model, const std::vector<MethodAnswer>& answers);

}  // namespace skein
