#include "server/decision_reads.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <utility>

#include "server/decision_labels.h"
#include "server/read_session.h"
#include "server/scheduling_fields.h"

namespace skein {
namespace {

constexpr double kTemperatureMax = 100;

// The levels' own names where each is a digit and all differ, else their places.
std::vector<std::string> DigitsOf(const DecisionQuestion& question) {
  std::vector<std::string> names;
  std::vector<std::string> places;
  for (const DecisionOption& option : question.options) {
    places.push_back(std::to_string(names.size()));
    const bool digit = option.name.size() == 1 && option.name[0] >= '0' && option.name[0] <= '9';
    if (digit && std::find(names.begin(), names.end(), option.name) == names.end()) {
      names.push_back(option.name);
    } else {
      names.emplace_back();
    }
  }
  return std::find(names.begin(), names.end(), "") == names.end() ? names : places;
}

// The labels of questions; those of one kind and size are looked for once.
class LabelCache {
 public:
  LabelCache(const ModelEntry* model, const PromptFrame* frame) : model_(model), frame_(frame) {}

  Result<DecisionLabels> Find(const DecisionQuestion& question) {
    std::vector<std::string> digits;
    if (question.kind == DecisionKind::kScore) digits = DigitsOf(question);
    auto& known =
        known_[{question.kind, question.options.size(), fmt::format("{}", fmt::join(digits, ""))}];
    if (known) return *known;
    std::string ending(ClosingLine(question.kind, question.options.size()));
    SKEIN_ASSIGN_OR_RETURN(
        const LabelFinder finder,
        LabelFinder::Make(model_->tokenizer, ending + frame_->after, frame_->space_before_label));
    Result<DecisionLabels> labels = question.kind == DecisionKind::kPredicate ? finder.YesNo()
                                    : question.kind == DecisionKind::kChoice
                                        ? finder.Letters(question.options.size())
                                        : finder.Exactly(digits);
    if (labels.ok()) known = *labels;
    return labels;
  }

 private:
  const ModelEntry* model_;
  const PromptFrame* frame_;
  std::map<std::tuple<DecisionKind, size_t, std::string>, std::optional<DecisionLabels>> known_;
};

}  // namespace

Status Within(const std::string& path, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("{}.{}", path, status.message()),
                status.param().empty() ? path : fmt::format("{}.{}", path, status.param()));
}

DecisionOptions ReadDecisionOptions(FieldReader* reader, const ModelEntry& model) {
  DecisionOptions options;
  ReadScheduling(reader, &options.base);
  options.temperature = reader->NumberAbove("temperature", 0, kTemperatureMax)
                            .value_or(static_cast<double>(model.traits.decision_temperature));
  options.diagnostics = reader->Bool("diagnostics").value_or(false);
  return options;
}

Status CheckReadsLabels(const ModelEntry& model) {
  if (model.traits.generates) return Status::Ok();
  return Status(StatusCode::kUnsupported,
                fmt::format("the model {} has no output matrix to read answers from: name a causal "
                            "language model",
                            model.name()),
                "model");
}

size_t MaxLabelTokens(const ModelEntry& model) {
  return static_cast<size_t>(std::max(1, model.max_model_len - 1));
}

Status CheckPromptLength(size_t tokens_max, size_t num_tokens, const std::string& field,
                         const std::string& what) {
  if (num_tokens == 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} must have at least one token", what), field);
  }
  if (num_tokens <= tokens_max) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("the prompt of {} has {} tokens, but this model takes at most {}: "
                            "shorten it",
                            what, num_tokens, tokens_max),
                field);
}

Result<Request> MakeRead(const ModelEntry& model, const Request& base, std::string_view text,
                         bool add_special_tokens, const std::string& field,
                         const std::string& what) {
  Request request = base;
  const Status encoded = model.tokenizer->Encode(text, add_special_tokens, &request.prompt);
  if (!encoded.ok()) {
    return Status(encoded.code(), fmt::format("{}: {}", what, encoded.message()), field);
  }
  SKEIN_RETURN_IF_ERROR(
      CheckPromptLength(MaxLabelTokens(model), request.prompt.size(), field, what));
  return request;
}

void SetSharedHead(size_t num_own_tokens, std::vector<Request>* requests) {
  const std::vector<TokenId>& first = requests->front().prompt;
  // Every prompt has a token of its own at least, the last.
  size_t shared = first.size() - 1;
  if (requests->size() == 1) {
    shared = first.size() - std::clamp<size_t>(num_own_tokens, 1, first.size());
  }
  for (const Request& request : *requests) {
    const auto& prompt = request.prompt;
    const auto end =
        first.begin() + static_cast<std::ptrdiff_t>(std::min(shared, prompt.size() - 1));
    shared = static_cast<size_t>(std::mismatch(first.begin(), end, prompt.begin()).first -
                                 first.begin());
  }
  for (Request& request : *requests) {
    request.group.parent_prefix_len = static_cast<int32_t>(shared);
  }
}

Result<std::vector<Request>> DecisionReads(const ModelEntry& model, const DecisionTask& task) {
  SKEIN_RETURN_IF_ERROR(CheckReadsLabels(model));
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, "questions", task.questions.size()));
  SKEIN_ASSIGN_OR_RETURN(const PromptFrame frame, MakePromptFrame(model));
  const std::string head = DecisionHead(task.instructions, task.input);
  LabelCache cache(&model, &frame);
  std::vector<Request> requests;
  std::string text;
  for (size_t i = 0; i < task.questions.size(); ++i) {
    const DecisionQuestion& question = task.questions[i];
    const std::string& field = task.question_fields[i];
    Result<DecisionLabels> labels = cache.Find(question);
    if (!labels.ok()) {
      return Status(labels.status().code(), fmt::format("{} {}", field, labels.status().message()),
                    field);
    }
    text = QuestionText(question, labels->texts);
    SKEIN_ASSIGN_OR_RETURN(
        Request request,
        MakeRead(model, task.options.base, frame.Wrap(head, text), frame.add_special_tokens,
                 task.input_field, fmt::format("{} with {}", task.input_field, field)));
    request.output = LabelSpec{std::move(labels->tokens), task.options.diagnostics};
    requests.push_back(std::move(request));
  }
  std::vector<TokenId> own;
  if (requests.size() == 1) {
    SKEIN_RETURN_IF_ERROR(model.tokenizer->Encode(text + frame.after, false, &own));
  }
  SetSharedHead(own.size(), &requests);
  return requests;
}

}  // namespace skein
