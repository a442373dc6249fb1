#include "server/decisions/heads/head_reading.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "server/decisions/heads/clef_answer.h"
#include "server/decisions/heads/clef_plan.h"
#include "server/decisions/heads/head_sequence.h"
#include "server/decisions/heads/kev_answer.h"
#include "server/decisions/heads/kev_sequence.h"
#include "server/decisions/heads/laya_sequence.h"
#include "server/decisions/heads/sysone_sequence.h"
#include "server/early_check.h"
#include "server/reads/read_inputs.h"
#include "server/reads/read_session.h"

namespace skein {
namespace {

double TemperatureOf(const DecisionModelTraits& traits, const DecisionQuestion& question) {
  const auto found = traits.temperature_by_options.find(OptionBucket(question));
  return found == traits.temperature_by_options.end() ? traits.temperature[TypeIndex(question.kind)]
                                                      : found->second;
}

Status NotTaken(const std::string& field, const char* why) {
  return Status(StatusCode::kUnsupported,
                fmt::format("{} is not taken by a decision model, {}", field, why), field);
}

// Refuses fields that a decision model does not take.
Status CheckTask(const DecisionTask& task) {
  constexpr char kInQuestions[] = "which reads each question's own instructions and options";
  constexpr char kHead[] = "which answers with its head alone";
  if (!task.instructions.empty()) return NotTaken("instructions", kInQuestions);
  if (!task.examples.empty()) return NotTaken("examples", kInQuestions);
  if (task.options.method.reading) return NotTaken("reading", kHead);
  if (task.options.method.prompt) return NotTaken("prompt", kHead);
  for (size_t i = 0; i < task.questions.size(); ++i) {
    if (!task.questions[i].cue.empty()) {
      return NotTaken(task.question_fields[i] + ".cue", kInQuestions);
    }
  }
  return Status::Ok();
}

// The functions that encode a state and its questions for the model's family.
struct HeadEncoder {
  std::function<Result<std::vector<TokenId>>(std::string_view text)> state;
  std::function<Result<HeadSequence>(const DecisionQuestion& question,
                                     std::span<const TokenId> state)>
      sequence;
};

Result<HeadEncoder> EncoderOf(const ModelEntry& model, const DecisionTask& task) {
  const DecisionModelTraits& traits = *model.traits.decision_model;
  if (traits.sysone) {
    SKEIN_ASSIGN_OR_RETURN(const SysoneEncoder encoder, SysoneEncoder::Make(model));
    return HeadEncoder{[encoder](std::string_view text) { return encoder.State(text); },
                       [encoder](const DecisionQuestion& question, std::span<const TokenId> state) {
                         return encoder.Sequence(question, state);
                       }};
  }
  if (traits.kev) {
    SKEIN_ASSIGN_OR_RETURN(const KevEncoder encoder, KevEncoder::Make(model));
    return HeadEncoder{[encoder](std::string_view text) { return encoder.State(text); },
                       [encoder](const DecisionQuestion& question, std::span<const TokenId> state) {
                         return encoder.Sequence(question, state);
                       }};
  }
  const DecisionOptions& options = task.options;
  const LayaBudgets budgets = {
      options.max_len > 0 ? options.max_len : std::min(traits.max_len, model.max_model_len),
      options.head_max_len > 0 ? options.head_max_len : traits.head_max_len};
  SKEIN_ASSIGN_OR_RETURN(const LayaEncoder encoder, LayaEncoder::Make(model, budgets));
  return HeadEncoder{[encoder](std::string_view text) { return encoder.State(text); },
                     [encoder, keeps_end = task.keeps_end](const DecisionQuestion& question,
                                                           std::span<const TokenId> state) {
                       return encoder.Sequence(question, state, keeps_end);
                     }};
}

// Checks that the model's step can hold the sequence of a question, or its options.
Status CheckFitsStep(const ModelEntry& model, const std::string& field,
                     const HeadSequence& sequence) {
  const auto num_tokens = std::ssize(sequence.ids);
  const auto most = static_cast<int64_t>(MaxTokens(model));
  const EngineLimits limits = model.engine->Limits();
  if (limits.max_whole_prompt_len > 0) {
    if (num_tokens <= most) return Status::Ok();
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} takes {} tokens with its state; the server reads at most {} "
                              "tokens of a question in one step (--max-num-batched-tokens raises "
                              "that)",
                              field, num_tokens, most),
                  field);
  }
  if (num_tokens > most) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} takes {} tokens with its state; the model reads at most {}",
                              field, num_tokens, most),
                  field);
  }
  const int64_t options = num_tokens - sequence.markers.front();
  if (options <= limits.max_tail_len) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} has options of {} tokens; the server reads at most {} tokens of "
                            "options in one step (--max-num-batched-tokens raises that)",
                            field, options, limits.max_tail_len),
                field);
}

// Makes the answer to each question from the head's values.
std::vector<MethodAnswer> HeadAnswers(const std::vector<DecisionQuestion>& questions,
                                      const std::vector<double>& temperatures,
                                      const ReadResults& results) {
  std::vector<MethodAnswer> answers;
  for (size_t i = 0; i < questions.size(); ++i) {
    const std::vector<float>& values = results.reads[i].values;
    const size_t count = questions[i].options.size();
    SKEIN_CHECK(values.size() >= count);
    std::vector<float> options(values.begin(), values.begin() + static_cast<int64_t>(count));
    // The head's first option of a predicate is no; the question's is yes.
    if (questions[i].kind == DecisionKind::kPredicate) std::ranges::reverse(options);
    MethodAnswer answer;
    answer.by_head = true;
    answer.method.temperature = temperatures[i];
    answer.answer = AnswerOf(options, temperatures[i]);
    const auto actions = std::span(values).subspan(count);
    if (!actions.empty()) answer.action_probability = AnswerOf(actions, 1).probabilities.front();
    answers.push_back(std::move(answer));
  }
  return answers;
}

// Rounds as Python's round(value, 4).
double Rounded(double value) { return std::strtod(fmt::format("{:.4f}", value).c_str(), nullptr); }

double EntropyConfidence(const std::vector<double>& probabilities) {
  constexpr double kLeast = 1e-12;
  if (probabilities.size() < 2) return 1;
  double entropy = 0;
  for (const double p : probabilities) entropy -= p * std::log(std::max(p, kLeast));
  return std::clamp(1 - entropy / std::log(static_cast<double>(probabilities.size())), 0.0, 1.0);
}

// The confidence of the rounded probabilities of a choice or a score. The operations follow the
// order of the model's own server, since their order changes the rounded result.
double UsualConfidence(DecisionKind kind, const std::vector<double>& rounded) {
  DecisionAnswer answer;
  double sum = 0;
  for (const double p : rounded) sum += p;
  const auto n = static_cast<double>(rounded.size());
  for (const double p : rounded) answer.probabilities.push_back(sum > 0 ? p / sum : 1 / n);
  const auto most = std::ranges::max_element(answer.probabilities);
  answer.mode = static_cast<size_t>(most - answer.probabilities.begin());
  if (kind == DecisionKind::kScore) return ScoreConfidence(answer);
  return n == 1 ? 1 : (*most - 1 / n) / (1 - 1 / n);
}

}  // namespace

Result<DecisionPlan> PlanHeadDecisions(const ModelEntry& model, const DecisionTask& task) {
  SKEIN_RETURN_IF_ERROR(CheckTask(task));
  SKEIN_RETURN_IF_ERROR(CheckNumReads(model, "questions", task.questions.size()));
  SKEIN_RETURN_IF_ERROR(CheckReadWait(model, task.options.base));
  const DecisionModelTraits& traits = *model.traits.decision_model;
  if (traits.clef) return PlanClefDecisions(model, task);
  SKEIN_ASSIGN_OR_RETURN(const HeadEncoder encoder, EncoderOf(model, task));
  Result<std::vector<TokenId>> state = encoder.state(task.input);
  if (!state.ok()) {
    return Status(state.status().code(),
                  fmt::format("{}: {}", task.input_field, state.status().message()),
                  task.input_field);
  }
  DecisionPlan plan;
  HeadUsage usage;
  usage.state_tokens = std::ssize(*state);
  std::vector<double> temperatures;
  for (size_t i = 0; i < task.questions.size(); ++i) {
    const DecisionQuestion& question = task.questions[i];
    const std::string& field = task.question_fields[i];
    Result<HeadSequence> sequence = encoder.sequence(question, *state);
    if (!sequence.ok()) {
      return Status(sequence.status().code(),
                    fmt::format("{} {}", field, sequence.status().message()), field);
    }
    SKEIN_RETURN_IF_ERROR(CheckFitsStep(model, field, *sequence));
    Request request = task.options.base;
    request.group.parent_prefix_len = sequence->num_shared;
    request.prompt = std::move(sequence->ids);
    request.output = DecideSpec{std::move(sequence->markers), TypeIndex(question.kind),
                                sequence->summary, std::move(sequence->option_bounds)};
    plan.requests.push_back(std::move(request));
    usage.questions.push_back({usage.state_tokens - sequence->state_tokens,
                               std::ssize(question.options), sequence->distinct_options,
                               sequence->option_limit});
    const double wanted = task.options.method.temperature;
    temperatures.push_back(wanted > 0 ? wanted : TemperatureOf(traits, question));
  }
  plan.head_usage = std::move(usage);
  plan.answers = [questions = task.questions,
                  temperatures = std::move(temperatures)](const ReadResults& results) {
    return HeadAnswers(questions, temperatures, results);
  };
  return plan;
}

Json HeadAnswerJson(const DecisionModelTraits& traits, const DecisionQuestion& question,
                    const MethodAnswer& read, bool diagnostics) {
  if (traits.kev || traits.clef) {
    Json json = traits.kev ? KevAnswerJson(question, read) : ClefAnswerJson(question, read);
    if (diagnostics) json["diagnostics"] = HeadDiagnosticsJson(read.method);
    return json;
  }
  const bool laya = traits.is_laya();
  const std::vector<double>& exact = read.answer.probabilities;
  std::vector<double> rounded;
  for (const double p : exact) rounded.push_back(Rounded(p));
  const double most = *std::ranges::max_element(exact);
  Json json;
  if (question.kind == DecisionKind::kPredicate) {
    json["type"] = "noul";
    json["noul"] = rounded[0];
    if (laya) {
      json["confidence"] = Rounded(most);
    } else {
      json["probabilities"]["false"] = rounded[1];
      json["probabilities"]["true"] = rounded[0];
    }
  } else {
    const bool choice = question.kind == DecisionKind::kChoice;
    json["type"] = choice ? "choice" : "score";
    json[choice ? "choice" : "score"] =
        choice ? Json(question.options[read.answer.mode].name) : Json(Rounded(read.answer.mean));
    Json legend = Json::object();
    Json probabilities = Json::object();
    for (size_t i = 0; i < question.options.size(); ++i) {
      const std::string level = std::to_string(i);
      probabilities[choice ? question.options[i].name : level] = rounded[i];
      legend[level] = question.options[i].description;
    }
    if (!choice) json["legend"] = std::move(legend);
    json["probabilities"] = std::move(probabilities);
    const double confidence = laya     ? EntropyConfidence(exact)
                              : choice ? ChoiceConfidence(read.answer)
                                       : ScoreConfidence(read.answer);
    json["confidence"] = Rounded(confidence);
  }
  json["answer_confidence"] = Rounded(most);
  if (laya) {
    if (read.action_probability) {
      json["action"]["act_probability"] = Rounded(*read.action_probability);
    }
    if (question.kind != DecisionKind::kPredicate) {
      json["x_jev_confidence"] = Rounded(UsualConfidence(question.kind, rounded));
    }
  }
  if (diagnostics) json["diagnostics"] = HeadDiagnosticsJson(read.method);
  return json;
}

Json HeadUsageJson(const DecisionModelTraits& traits, const HeadUsage& usage, int64_t input_tokens,
                   const std::vector<std::string>& ids) {
  if (!traits.is_laya()) return {{"input_tokens", input_tokens}, {"output_tokens", 0}};
  int64_t most_dropped = 0;
  Json truncated = Json::array();
  Json options = Json::object();
  for (size_t i = 0; i < ids.size(); ++i) {
    const HeadUsage::OfQuestion& question = usage.questions[i];
    most_dropped = std::max(most_dropped, question.state_tokens_dropped);
    if (question.state_tokens_dropped > 0) truncated.push_back(ids[i]);
    if (question.distinct_options == question.num_options) continue;
    Json& collapsed = options[ids[i]];
    collapsed["total"] = question.num_options;
    collapsed["distinct"] = question.distinct_options;
    collapsed["tokens_per_option"] =
        question.option_limit ? Json(*question.option_limit) : Json(nullptr);
  }
  Json json;
  json["input_tokens"] = input_tokens;
  json["output_tokens"] = 0;
  json["state_tokens"] = usage.state_tokens;
  json["state_tokens_dropped"] = most_dropped;
  json["truncated"] = most_dropped > 0;
  json["truncated_questions"] = std::move(truncated);
  if (!options.empty()) json["options"] = std::move(options);
  return json;
}

Json HeadDiagnosticsJson(const DecisionMethod& method) {
  Json json;
  json["reading"] = "head";
  json["temperature"] = method.temperature;
  return json;
}

}  // namespace skein
