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

// The method that a request or an option asks for. Unset members come from the model's profile.
struct MethodOverride {
  std::optional<NamedReading> reading;
  // Unset: the prompt of the profile, or the default of another `reading`.
  std::optional<PromptForm> prompt;
  // 0: the profile's temperature and offset if the reading and the prompt are the profile's,
  // otherwise temperature 1 and no offset.
  double temperature = 0;
};
// Reads `reading`, `prompt` and `temperature`; refuses unknown names.
MethodOverride ReadMethodOverride(FieldReader* reader);
DecisionMethod MethodOf(const DecisionMethod& profile, const MethodOverride& wanted);

// The fields that /v1/decisions and /v1/systemone share, read from the body.
struct DecisionOptions {
  Request base;  // scheduling fields
  MethodOverride method;
  bool diagnostics = true;      // describe how each answer was obtained
  bool exact_spelling = false;  // reading words: count only an option's own text
  // Only for Laya models: the most tokens of a question with its state, and the most tokens of the
  // question's part. 0: the model's own limits.
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
  std::string input_field;  // the field with the input, for messages
  bool keeps_end = false;   // decision models: an input that is too long loses its beginning
  std::vector<DecisionQuestion> questions;
  std::vector<std::string> question_fields;  // [questions.size()], for messages
  // The client's names of the questions, which some decision models read. Missing or empty ones are
  // question_1, question_2, ...
  std::vector<std::string> question_ids;
  std::vector<DecisionExample> examples;
};

// An answer and how it was read.
struct MethodAnswer {
  DecisionAnswer answer;
  DecisionMethod method;
  bool by_head = false;  // the answer of a decision model's head
  // Only Laya models: the probability of the first action, which is to answer.
  std::optional<double> action_probability;
};

// The part of an input that a decision model used.
struct HeadUsage {
  struct OfQuestion {
    int64_t state_tokens_dropped = 0;
    int64_t num_options = 0;
    int64_t distinct_options = 0;
    std::optional<int32_t> option_limit;  // tokens to which options were cut; unset: not cut
  };
  int64_t state_tokens = 0;
  std::vector<OfQuestion> questions;  // [task.questions.size()]
};

struct DecisionPlan {
  std::vector<Request> requests;
  std::vector<bool> charged;  // [requests.size()]: counted in the usage
  // Makes the answers [task.questions.size()] from the outputs of `requests`.
  std::function<std::vector<MethodAnswer>(const ReadResults& results)> answers;
  std::optional<HeadUsage> head_usage;  // only for decision models
};

// Makes the requests that read the answers of `task`. Errors name the question's field. Fails with
// kResourceExhausted, before it encodes, if the requests would wait too long.
Result<DecisionPlan> PlanDecisions(const ModelEntry& model, const DecisionTask& task);

// Reads `examples`: at most kExamplesMax objects {input, answers}. `input_of` reads an example's
// input; `options_of` reads its answers as indices of options. Both name fields relative to the
// example.
constexpr size_t kExamplesMax = 64;
Result<std::vector<DecisionExample>> ReadExamples(
    FieldReader* reader, const std::function<Result<std::string>(const Json& example)>& input_of,
    const std::function<Result<std::vector<size_t>>(const Json& answers)>& options_of);

// Warns in the log, at most once a minute, if the options of an answer have a small label mass.
void WarnOfSmallMass(const ModelEntry& model, const std::vector<MethodAnswer>& answers);

}  // namespace skein
