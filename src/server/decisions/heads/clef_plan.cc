#include "server/decisions/heads/clef_plan.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "server/decisions/heads/head_sequence.h"
#include "server/json/python_json.h"
#include "server/reads/read_inputs.h"

namespace skein {
namespace {

constexpr std::string_view kPrefix =
    "<|im_start|>system\nRead the complete state and schema. Decide every field jointly. Each "
    "answer must be exactly one of that field's allowed options.<|im_end|>\n<|im_start|>user\n"
    "STATE:\n";
constexpr std::string_view kSuffix =
    "\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:";
// The meaning of yes and of no of a predicate, unless the client describes them.
constexpr std::string_view kUsualMeaning[] = {"The proposition is true or the answer is yes.",
                                              "The proposition is false or the answer is no."};

const char* ClefType(DecisionKind kind) {
  return kind == DecisionKind::kChoice ? "choice" : kind == DecisionKind::kScore ? "score" : "noul";
}

// The name under which the model knows an option.
std::string OptionId(const DecisionQuestion& question, size_t option) {
  switch (question.kind) {
    case DecisionKind::kPredicate:
      return option == 0 ? "true" : "false";
    case DecisionKind::kScore:
      return std::to_string(option);
    case DecisionKind::kChoice:
      break;
  }
  return question.options[option].name;
}

// The description of an option as JSON; empty if there is none.
std::string DescriptionJson(const DecisionQuestion& question, size_t option) {
  const DecisionOption& asked = question.options[option];
  if (!asked.json.empty()) return asked.json == "null" ? "" : asked.json;
  std::string text = asked.description;
  if (question.kind == DecisionKind::kScore && !asked.name.empty()) {
    text = LabelledText(asked.name, asked.description);
  }
  if (text.empty() && question.kind == DecisionKind::kPredicate) text = kUsualMeaning[option];
  return text.empty() ? "" : DumpSortedJson(Json(text));
}

std::string OptionJson(const DecisionQuestion& question, size_t option) {
  const std::string description = DescriptionJson(question, option);
  const std::string id = DumpSortedJson(Json(OptionId(question, option)));
  return description.empty()
             ? fmt::format(R"({{"option_id":{}}})", id)
             : fmt::format(R"({{"description":{},"option_id":{}}})", description, id);
}

// The options of a question in the order of the model.
std::vector<size_t> OptionOrder(const DecisionQuestion& question) {
  std::vector<size_t> order(question.options.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (question.kind != DecisionKind::kChoice) return order;
  std::ranges::sort(order, {},
                    [&](size_t i) -> const std::string& { return question.options[i].name; });
  return order;
}

// The part of a prompt behind the state. Positions count from its beginning.
class SchemaText {
 public:
  explicit SchemaText(const ModelEntry& model) : model_(model) {}

  Status Append(std::string_view text) { return EncodeForHead(model_, text, &ids_); }

  Status AddQuestion(size_t number, const std::string& id, const DecisionQuestion& question) {
    SKEIN_RETURN_IF_ERROR(Append(fmt::format("\nFIELD {}\nID: {}\nTYPE: {}\nINSTRUCTION: ", number,
                                             id, ClefType(question.kind))));
    schema_.types.push_back(TypeIndex(question.kind));
    schema_.text_begins.push_back(size());
    SKEIN_RETURN_IF_ERROR(Append(question.instructions.empty() ? id : question.instructions));
    schema_.text_ends.push_back(size());
    if (schema_.text_begins.back() == size()) {
      return Status(StatusCode::kInvalidArgument, "has instructions without a token");
    }
    SKEIN_RETURN_IF_ERROR(Append("\nALLOWED OPTIONS:\n"));
    size_t place = 1;
    for (const size_t option : OptionOrder(question)) {
      SKEIN_RETURN_IF_ERROR(Append(fmt::format("OPTION {}: ", place++)));
      markers_.push_back(size());
      SKEIN_RETURN_IF_ERROR(Append(OptionJson(question, option)));
      schema_.option_ends.push_back(size());
      SKEIN_RETURN_IF_ERROR(Append("\n"));
    }
    schema_.option_counts.push_back(static_cast<int32_t>(question.options.size()));
    return Append("END FIELD\n");
  }

  int32_t size() const { return static_cast<int32_t>(ids_.size()); }
  const std::vector<TokenId>& ids() const { return ids_; }

  // The questions at their positions in a prompt in which this part begins at `begin`.
  DecideSpec At(int32_t begin) && {
    for (std::vector<int32_t>* positions :
         {&markers_, &schema_.text_begins, &schema_.text_ends, &schema_.option_ends}) {
      for (int32_t& position : *positions) position += begin;
    }
    return {.markers = std::move(markers_), .schema = std::move(schema_)};
  }

 private:
  const ModelEntry& model_;
  std::vector<TokenId> ids_;
  std::vector<int32_t> markers_;
  JointSchema schema_;
};

Status CheckNumOptions(const DecisionTask& task) {
  size_t options = 0;
  for (const DecisionQuestion& question : task.questions) options += question.options.size();
  if (options <= size_t{kMaxLabels}) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("questions have {} options together; the model reads at most {} of a "
                            "request",
                            options, kMaxLabels),
                "questions");
}

std::string IdOf(const DecisionTask& task, size_t question) {
  const bool has_id = question < task.question_ids.size() && !task.question_ids[question].empty();
  return has_id ? task.question_ids[question] : fmt::format("question_{}", question + 1);
}

Status CheckPromptFits(const ModelEntry& model, const DecisionTask& task, int64_t num_tokens) {
  const auto most = static_cast<int64_t>(MaxTokens(model));
  if (num_tokens <= most) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} takes {} tokens with all questions; the server reads at most {} "
                            "tokens of a request in one step (--max-num-batched-tokens raises "
                            "that)",
                            task.input_field, num_tokens, most),
                task.input_field);
}

// Makes the answers from the logits of all options, in the order of the model.
std::vector<MethodAnswer> ClefAnswers(const std::vector<DecisionQuestion>& questions,
                                      double temperature, const std::vector<float>& logits) {
  std::vector<MethodAnswer> answers;
  size_t at = 0;
  for (const DecisionQuestion& question : questions) {
    std::vector<float> options(question.options.size());
    SKEIN_CHECK(at + options.size() <= logits.size());
    for (const size_t option : OptionOrder(question)) options[option] = logits[at++];
    MethodAnswer answer;
    answer.by_head = true;
    answer.method.temperature = temperature;
    answer.answer = AnswerOf(options, temperature);
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace

Result<DecisionPlan> PlanClefDecisions(const ModelEntry& model, const DecisionTask& task) {
  SKEIN_RETURN_IF_ERROR(CheckNumOptions(task));
  SchemaText schema(model);
  SKEIN_RETURN_IF_ERROR(schema.Append("\n\nSCHEMA FIELDS:\n"));
  for (size_t i = 0; i < task.questions.size(); ++i) {
    const Status status = schema.AddQuestion(i + 1, IdOf(task, i), task.questions[i]);
    if (!status.ok()) {
      const std::string& field = task.question_fields[i];
      return Status(status.code(), fmt::format("{} {}", field, status.message()), field);
    }
  }
  Request request = task.options.base;
  std::vector<TokenId> suffix, state;
  SKEIN_RETURN_IF_ERROR(model.tokenizer->Encode(kPrefix, false, &request.prompt));
  SKEIN_RETURN_IF_ERROR(model.tokenizer->Encode(kSuffix, false, &suffix));
  if (const Status status = EncodeForHead(model, task.input, &state); !status.ok()) {
    return Status(status.code(), fmt::format("{}: {}", task.input_field, status.message()),
                  task.input_field);
  }
  const int64_t max_len = std::min(model.traits.decision_model->max_len, model.max_model_len);
  const int64_t room = max_len - std::ssize(request.prompt) - schema.size() - std::ssize(suffix);
  if (room < 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("questions take {} tokens without the state; the model reads at most "
                              "{}",
                              max_len - room, max_len),
                  "questions");
  }
  const auto kept = std::min(std::ssize(state), room);
  DecisionPlan plan;
  HeadUsage usage;
  usage.state_tokens = std::ssize(state);
  for (const DecisionQuestion& question : task.questions) {
    const auto count = std::ssize(question.options);
    usage.questions.push_back({usage.state_tokens - kept, count, count, std::nullopt});
  }
  std::vector<TokenId>& prompt = request.prompt;
  prompt.insert(prompt.end(), state.begin(), state.begin() + kept);
  const auto begin = static_cast<int32_t>(prompt.size());
  prompt.insert(prompt.end(), schema.ids().begin(), schema.ids().end());
  prompt.insert(prompt.end(), suffix.begin(), suffix.end());
  SKEIN_RETURN_IF_ERROR(CheckPromptFits(model, task, std::ssize(prompt)));
  request.output = std::move(schema).At(begin);
  plan.requests.push_back(std::move(request));
  plan.head_usage = std::move(usage);
  const double wanted = task.options.method.temperature;
  plan.answers = [questions = task.questions,
                  temperature = wanted > 0 ? wanted : 1.0](const ReadResults& results) {
    return ClefAnswers(questions, temperature, results.reads[0].values);
  };
  return plan;
}

}  // namespace skein
