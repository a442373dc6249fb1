#include "server/decisions/decision_reads.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "server/decisions/combined_reading.h"
#include "server/decisions/decision_method_names.h"
#include "server/decisions/decision_requests.h"
#include "server/decisions/heads/head_reading.h"
#include "server/decisions/similarity_reading.h"
#include "server/decisions/text_reading.h"
#include "server/early_check.h"
#include "server/json/scheduling_fields.h"
#include "server/reads/read_inputs.h"

namespace skein {
namespace {

const DecisionMethod& ProfileOf(const ModelEntry& model, DecisionKind kind) {
  const DecisionProfile& profile = model.traits.decisions;
  switch (kind) {
    case DecisionKind::kPredicate:
      return profile.predicate;
    case DecisionKind::kChoice:
      return profile.choice;
    case DecisionKind::kScore:
      return profile.score;
  }
  return profile.choice;
}

// The readings of one request. Each reading is made once and serves all questions with the same
// method.
class ReadingSet {
 public:
  ReadingSet(const ModelEntry* model, const DecisionTask* task) : model_(model), task_(task) {}

  Result<QuestionReads> Plan(const DecisionMethod& method, const AskedQuestion& asked) {
    SKEIN_ASSIGN_OR_RETURN(const QuestionReading* reading, Innermost(method));
    const PermutedReading permuted(reading);
    if (method.permuted) reading = &permuted;
    const CalibratedReading calibrated(reading, NameOf(method), model_->baselines);
    if (method.calibrated) reading = &calibrated;
    return reading->Plan(asked);
  }

 private:
  struct OfForm {
    TextReadingConfig config;
    std::unique_ptr<LettersReading> letters;
    std::unique_ptr<WordsReading> words;
  };

  Result<const QuestionReading*> Innermost(const DecisionMethod& method) {
    if (method.reading == Reading::kSimilarity) {
      auto& reading = similarity_[method.prompt];
      if (reading == nullptr) {
        reading = std::make_unique<SimilarityReading>(model_, method.prompt, task_->options.base,
                                                      task_->input_field);
      }
      return reading.get();
    }
    if (method.reading == Reading::kLikelihood) {
      return Status(StatusCode::kInvalidArgument,
                    "the reading likelihood is for ranks and scores of pairs; questions take "
                    "letters, words or similarity",
                    "reading");
    }
    SKEIN_RETURN_IF_ERROR(CheckReadsLabels(*model_));
    OfForm& form = forms_[method.prompt];
    if (form.letters == nullptr) {
      SKEIN_ASSIGN_OR_RETURN(PromptFrame frame, MakePromptFrame(*model_, method.prompt));
      form.config = {model_,
                     model_->chat_template == nullptr && method.prompt == PromptForm::kChat
                         ? PromptForm::kQuestion
                         : method.prompt,
                     std::move(frame),
                     task_->options.base,
                     task_->input_field,
                     task_->options.diagnostics,
                     task_->options.exact_spelling};
      form.letters = std::make_unique<LettersReading>(&form.config);
      form.words = std::make_unique<WordsReading>(&form.config);
    }
    if (method.reading == Reading::kWords) return form.words.get();
    return form.letters.get();
  }

  // The name under which the cache of baselines keeps a method's answers. Methods with different
  // answers have different names.
  std::string NameOf(const DecisionMethod& method) const {
    return fmt::format("{} {} {} {}", ReadingName(method), skein::NameOf(method.prompt),
                       task_->options.exact_spelling, task_->options.base.cache_salt);
  }

  const ModelEntry* model_;
  const DecisionTask* task_;
  std::map<PromptForm, OfForm> forms_;  // a map, since readings point to its configs
  std::map<PromptForm, std::unique_ptr<SimilarityReading>> similarity_;
};

AskedQuestion Ask(const DecisionTask& task, size_t index) {
  AskedQuestion asked;
  asked.question = &task.questions[index];
  asked.instructions = task.instructions;
  asked.input = task.input;
  asked.field = task.question_fields[index];
  for (const DecisionExample& example : task.examples) {
    asked.examples.push_back({example.input, example.options[index]});
  }
  return asked;
}

// The rows that belong to one question.
struct Part {
  size_t begin = 0;
  size_t end = 0;
  DecisionMethod method;
  std::function<OptionScores(std::span<const RowOutput>)> read;
};

std::vector<MethodAnswer> AnswersOf(const std::vector<Part>& parts, const ReadResults& results) {
  std::vector<RowOutput> outputs;
  for (size_t i = 0; i < results.reads.size(); ++i) {
    outputs.push_back({&results.reads[i], results.prompt_logprobs[i]});
  }
  std::vector<MethodAnswer> answers;
  for (const Part& part : parts) {
    const auto own = std::span(outputs).subspan(part.begin, part.end - part.begin);
    OptionScores scores = part.read(own);
    scores.logprobs[0] += part.method.offset;  // the offset belongs to yes; other types have none
    answers.push_back({AnswerOf(scores, part.method.temperature), part.method});
  }
  return answers;
}

}  // namespace

MethodOverride ReadMethodOverride(FieldReader* reader) {
  MethodOverride wanted;
  // An empty name counts as not given.
  if (const auto name = reader->String("reading"); name && !name->empty()) {
    const auto reading = ParseReading(*name, "reading");
    if (!reading.ok()) reader->Refuse("reading", reading.status().message());
    if (reading.ok()) wanted.reading = reading.value();
  }
  if (const auto name = reader->String("prompt"); name && !name->empty()) {
    const auto prompt = ParsePrompt(*name, "prompt");
    if (!prompt.ok()) reader->Refuse("prompt", prompt.status().message());
    if (prompt.ok()) wanted.prompt = prompt.value();
  }
  wanted.temperature = reader->NumberAbove("temperature", 0, kTemperatureMax).value_or(0);
  return wanted;
}

DecisionMethod MethodOf(const DecisionMethod& profile, const MethodOverride& wanted) {
  DecisionMethod method = profile;
  if (wanted.reading) {
    SetReading(*wanted.reading, &method);
    if (method.reading != profile.reading) {
      method.prompt = method.reading == Reading::kWords ? PromptForm::kQuestion : PromptForm::kChat;
    }
  }
  method.prompt = wanted.prompt.value_or(method.prompt);
  const bool same = method == profile;
  if (!same || wanted.temperature > 0) {
    method.temperature = wanted.temperature > 0 ? wanted.temperature : 1;
    method.offset = 0;
  }
  return method;
}

DecisionOptions ReadDecisionOptions(const ModelEntry& model, FieldReader* reader) {
  DecisionOptions options;
  if (model.traits.decision_model && model.traits.decision_model->is_laya()) {
    const auto budget = [&](const char* name) {
      return static_cast<int32_t>(reader->Int(name, 1, model.max_model_len).value_or(0));
    };
    options.max_len = budget("max_len");
    options.head_max_len = budget("head_max_len");
    const auto most = static_cast<int32_t>(MaxTokens(model));
    if (options.max_len > most) {
      reader->Refuse("max_len", fmt::format("max_len is {}; the server reads at most {} tokens of "
                                            "a question in one step (--max-num-batched-tokens "
                                            "raises that)",
                                            options.max_len, most));
    }
  }
  ReadScheduling(reader, &options.base);
  options.method = ReadMethodOverride(reader);
  options.diagnostics = reader->Bool("diagnostics").value_or(true);
  const std::string spellings = reader->String("spellings").value_or("all");
  if (spellings != "all" && spellings != "exact") {
    reader->RefuseValue("spellings", "\"all\" or \"exact\"", Json(spellings));
  }
  options.exact_spelling = spellings == "exact";
  return options;
}

Result<DecisionPlan> PlanDecisions(const ModelEntry& model, const DecisionTask& task) {
  if (model.traits.decision_model) return PlanHeadDecisions(model, task);
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, "questions", task.questions.size()));
  SKEIN_RETURN_IF_ERROR(CheckReadWait(model, task.options.base));
  DecisionPlan plan;
  std::vector<Part> parts;
  ReadingSet readings(&model, &task);
  std::string own_text;
  for (size_t i = 0; i < task.questions.size(); ++i) {
    const std::string& field = task.question_fields[i];
    Part part;
    part.method = MethodOf(ProfileOf(model, task.questions[i].kind), task.options.method);
    Result<QuestionReads> reads = readings.Plan(part.method, Ask(task, i));
    if (!reads.ok()) {
      const Status& status = reads.status();
      if (!status.param().empty()) return status;
      return Status(status.code(), fmt::format("{} {}", field, status.message()), field);
    }
    if (i == 0) own_text = std::move(reads->own_text);
    part.begin = plan.requests.size();
    for (DecisionRow& row : reads->rows) {
      plan.requests.push_back(std::move(row.request));
      plan.charged.push_back(row.charged);
    }
    part.end = plan.requests.size();
    part.read = std::move(reads->read);
    parts.push_back(std::move(part));
  }
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, "questions", plan.requests.size()));
  std::vector<TokenId> own;
  if (plan.requests.size() == 1) {
    SKEIN_RETURN_IF_ERROR(model.tokenizer->Encode(own_text, false, &own));
  }
  SetSharedHead(own.size(), &plan.requests);
  plan.answers = [parts = std::move(parts)](const ReadResults& results) {
    return AnswersOf(parts, results);
  };
  return plan;
}

Result<std::vector<DecisionExample>> ReadExamples(
    FieldReader* reader, const std::function<Result<std::string>(const Json& example)>& input_of,
    const std::function<Result<std::vector<size_t>>(const Json& answers)>& options_of) {
  std::vector<DecisionExample> examples;
  const Json* list = reader->Find("examples");
  if (list == nullptr) return examples;
  if (!list->is_array() || list->size() > kExamplesMax) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("examples must be an array of at most {} objects {{input, answers}}",
                              kExamplesMax),
                  "examples");
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("examples[{}]", i);
    const Json& example = (*list)[i];
    if (!example.is_object() || !example.contains("answers")) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} must be an object with input and answers", place), place);
    }
    Result<std::string> input = input_of(example);
    if (!input.ok()) return Within(place, input.status());
    Result<std::vector<size_t>> options = options_of(example.at("answers"));
    if (!options.ok()) return Within(place, options.status());
    examples.push_back({std::move(input).value(), std::move(options).value()});
  }
  return examples;
}

void WarnOfSmallMass(const ModelEntry& model, const std::vector<MethodAnswer>& answers) {
  constexpr TimeUs kBetweenWarningsUs = 60'000'000;
  const auto least = std::ranges::min_element(
      answers, {}, [](const MethodAnswer& a) { return a.answer.label_mass.value_or(1); });
  if (least == answers.end() || least->answer.label_mass.value_or(1) >= kSmallLabelMass) return;
  const TimeUs now_us = MonotonicClock().NowUs();
  TimeUs last_us = model.warned_us->load(std::memory_order_relaxed);
  if (last_us != 0 && now_us - last_us < kBetweenWarningsUs) return;
  if (!model.warned_us->compare_exchange_strong(last_us, now_us)) return;
  spdlog::warn(
      "{}: a question's options have a probability of {:.3f} together, read by {} behind the "
      "prompt {}: the model would rather write something else (docs/decisions.md)",
      model.name(), *least->answer.label_mass, ReadingName(least->method),
      skein::NameOf(least->method.prompt));
}

}  // namespace skein
