#include "engine/validate.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sched/plan.h"

namespace skein {
namespace {

Status Refuse(const char* field, std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message), field};
}

// NaN fails every comparison, therefore the condition is the positive one.
Status CheckRange(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return Status::Ok();
  return Refuse(field, fmt::format("{} is {}, must be in [{}, {}]", field, value, low, high));
}

Status CheckPositive(const char* field, double value, double high) {
  if (value > 0 && value <= high) return Status::Ok();
  return Refuse(field, fmt::format("{} is {}, must be above 0 and at most {}", field, value, high));
}

Status CheckTokens(const char* field, std::span<const TokenId> tokens, int32_t vocab_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_size) continue;
    return Refuse(field, fmt::format("{}[{}] is token id {}, must be in [0, {})", field, i,
                                     tokens[i], vocab_size));
  }
  return Status::Ok();
}

Status CheckDistinct(const char* field, std::vector<TokenId> tokens) {
  std::ranges::sort(tokens);
  const auto twice = std::ranges::adjacent_find(tokens);
  if (twice == tokens.end()) return Status::Ok();
  return Refuse(field, fmt::format("{} names token id {} twice", field, *twice));
}

Status CheckLogitBias(const SamplingParams& sampling, int32_t vocab_size) {
  std::vector<TokenId> ids;
  ids.reserve(sampling.logit_bias.size());
  for (const auto& [token, bias] : sampling.logit_bias) {
    ids.push_back(token);
    SKEIN_RETURN_IF_ERROR(CheckRange("logit_bias", bias, -100, 100));
  }
  SKEIN_RETURN_IF_ERROR(CheckTokens("logit_bias", ids, vocab_size));
  return CheckDistinct("logit_bias", std::move(ids));
}

Status CheckSampling(const SamplingParams& sampling, int32_t vocab_size) {
  constexpr double kFloatMax = std::numeric_limits<float>::max();
  SKEIN_RETURN_IF_ERROR(CheckRange("temperature", sampling.temperature, 0, 2));
  SKEIN_RETURN_IF_ERROR(
      CheckRange("top_k", sampling.top_k, 0, std::numeric_limits<int32_t>::max()));
  SKEIN_RETURN_IF_ERROR(CheckPositive("top_p", sampling.top_p, 1));
  SKEIN_RETURN_IF_ERROR(CheckRange("min_p", sampling.min_p, 0, 1));
  SKEIN_RETURN_IF_ERROR(CheckRange("repetition_penalty", sampling.repetition_penalty,
                                   kMinRepetitionPenalty, kFloatMax));
  SKEIN_RETURN_IF_ERROR(CheckRange("presence_penalty", sampling.presence_penalty, -2, 2));
  SKEIN_RETURN_IF_ERROR(CheckRange("frequency_penalty", sampling.frequency_penalty, -2, 2));
  SKEIN_RETURN_IF_ERROR(CheckLogitBias(sampling, vocab_size));
  return CheckTokens("allowed_token_ids", sampling.allowed_token_ids, vocab_size);
}

Status CheckNamedLogprobs(const GenerateSpec& generate, int32_t vocab_size) {
  const std::vector<TokenId>& ids = generate.logprob_token_ids;
  if (ids.empty()) return Status::Ok();
  if (!generate.num_logprobs || ids.size() > size_t{kMaxLabels}) {
    return Refuse(
        "logprob_token_ids",
        fmt::format("logprob_token_ids has {} entries, must have at most {}, and be given "
                    "with logprobs",
                    ids.size(), kMaxLabels));
  }
  SKEIN_RETURN_IF_ERROR(CheckTokens("logprob_token_ids", ids, vocab_size));
  return CheckDistinct("logprob_token_ids", ids);
}

Status CheckChoices(const EngineLimits& limits, const Request& request) {
  const GenerateSpec& generate = request.generate();
  if (generate.choices.empty()) return Status::Ok();
  if (generate.choices.size() > size_t{kMaxChoices}) {
    return Refuse("choices", fmt::format("choices has {} entries, must have at most {}",
                                         generate.choices.size(), kMaxChoices));
  }
  if (generate.min_tokens > 0 || !generate.stop_token_ids.empty() ||
      !generate.sampling.allowed_token_ids.empty()) {
    return Refuse("choices",
                  "choices allow neither min_tokens nor stop_token_ids nor allowed_token_ids");
  }
  const int64_t room =
      std::min<int64_t>(generate.max_tokens, limits.max_model_len - std::ssize(request.prompt));
  for (const std::vector<TokenId>& choice : generate.choices) {
    SKEIN_RETURN_IF_ERROR(CheckTokens("choices", choice, limits.vocab_size));
    if (choice.empty() || std::ssize(choice) > room) {
      return Refuse("choices", fmt::format("a choice has {} tokens, must have 1 to {}: max_tokens "
                                           "and what the context has room for",
                                           choice.size(), room));
    }
  }
  std::vector<std::vector<TokenId>> sorted = generate.choices;
  std::ranges::sort(sorted);
  for (size_t i = 1; i < sorted.size(); ++i) {
    // After sorting, a choice that begins with another choice comes right behind it, or behind a
    // further choice that begins with it.
    if (sorted[i] == sorted[i - 1] || GoesOn(sorted[i], sorted[i - 1])) {
      return Refuse("choices", "no choice may begin with another");
    }
  }
  return Status::Ok();
}

Status CheckGrammar(const GenerateSpec& generate) {
  if (generate.grammar == nullptr) return Status::Ok();
  if (generate.min_tokens > 0 || !generate.sampling.allowed_token_ids.empty() ||
      !generate.choices.empty()) {
    return Refuse("grammar",
                  "a grammar allows neither min_tokens nor allowed_token_ids nor choices");
  }
  if (generate.stop_token_ids.empty()) {
    return Refuse("grammar", "a grammar needs the model's end tokens in stop_token_ids");
  }
  return Status::Ok();
}

Status CheckGenerate(const EngineLimits& limits, const Request& request) {
  const GenerateSpec& generate = request.generate();
  SKEIN_RETURN_IF_ERROR(CheckSampling(generate.sampling, limits.vocab_size));
  SKEIN_RETURN_IF_ERROR(CheckTokens("stop_token_ids", generate.stop_token_ids, limits.vocab_size));
  if (generate.min_tokens < 0 || generate.min_tokens > std::max(0, generate.max_tokens)) {
    return Refuse("min_tokens", fmt::format("min_tokens is {}, must be in [0, max_tokens = {}]",
                                            generate.min_tokens, generate.max_tokens));
  }
  if (generate.num_logprobs) {
    SKEIN_RETURN_IF_ERROR(CheckRange("logprobs", *generate.num_logprobs, 0, limits.max_logprobs));
  }
  SKEIN_RETURN_IF_ERROR(CheckNamedLogprobs(generate, limits.vocab_size));
  SKEIN_RETURN_IF_ERROR(CheckGrammar(generate));
  return CheckChoices(limits, request);
}

Status CheckLabels(const EngineLimits& limits, const LabelSpec& labels) {
  constexpr const char* kField = "label_token_ids";
  const auto count = std::ssize(labels.tokens);
  if (count < 1 || count > kMaxLabels) {
    return Refuse(
        kField, fmt::format("{} holds {} token ids, must hold 1 to {}", kField, count, kMaxLabels));
  }
  SKEIN_RETURN_IF_ERROR(CheckTokens(kField, labels.tokens, limits.vocab_size));
  return CheckDistinct(kField, labels.tokens);
}

Status CheckPromptLogprobs(const EngineLimits& limits, const Request& request) {
  if (!request.generates() && !std::holds_alternative<LabelSpec>(request.output)) {
    return Refuse("prompt_logprobs",
                  "prompt_logprobs is given; only requests that generate or read labels have any");
  }
  SKEIN_RETURN_IF_ERROR(
      CheckRange("prompt_logprobs", request.prompt_logprobs->num_top, 0, limits.max_logprobs));
  const int32_t start = request.prompt_logprobs->start;
  if (request.prompt.empty() || (start >= 0 && start < std::ssize(request.prompt))) {
    return Status::Ok();
  }
  return Refuse("prompt_logprob_start",
                fmt::format("prompt_logprob_start is {}, must be in [0, {}), the prompt's length",
                            start, request.prompt.size()));
}

// Checks the questions that a joint head answers.
Status CheckSchema(int64_t prompt_len, const DecideSpec& decide) {
  const JointSchema& schema = decide.schema;
  const size_t questions = schema.types.size();
  if (questions == 0) return Status::Ok();
  const auto options =
      std::accumulate(schema.option_counts.begin(), schema.option_counts.end(), int64_t{0});
  bool valid = schema.text_begins.size() == questions && schema.text_ends.size() == questions &&
               schema.option_counts.size() == questions && options == std::ssize(decide.markers) &&
               schema.option_ends.size() == decide.markers.size();
  for (size_t i = 0; valid && i < questions; ++i) {
    valid = schema.types[i] >= 0 && schema.types[i] < kNumQuestionTypes &&
            schema.option_counts[i] >= 1 && schema.text_begins[i] >= 0 &&
            schema.text_begins[i] < schema.text_ends[i] && schema.text_ends[i] <= prompt_len;
  }
  for (size_t i = 0; valid && i < decide.markers.size(); ++i) {
    valid = decide.markers[i] < schema.option_ends[i] && schema.option_ends[i] <= prompt_len;
  }
  if (valid) return Status::Ok();
  return Refuse("schema",
                "schema must name the texts and options of its questions as parts of the prompt "
                "that are not empty");
}

Status CheckDecide(const Request& request, const DecideSpec& decide) {
  const auto& markers = decide.markers;
  const auto count = std::ssize(markers);
  if (count < 1 || count > kMaxLabels) {
    return Refuse("markers",
                  fmt::format("markers holds {} positions, must hold 1 to {}", count, kMaxLabels));
  }
  const bool ascending = std::ranges::adjacent_find(markers, std::greater_equal()) == markers.end();
  if (!ascending || markers.front() < 0 || markers.back() >= std::ssize(request.prompt)) {
    return Refuse("markers", "markers must be positions of the prompt, ascending");
  }
  SKEIN_RETURN_IF_ERROR(
      CheckRange("summary", decide.summary, 0, static_cast<double>(request.prompt.size()) - 1));
  const auto& bounds = decide.option_bounds;
  if (!bounds.empty() &&
      (bounds.size() < 2 || bounds.front() < 1 || bounds.back() > std::ssize(request.prompt) ||
       std::ranges::adjacent_find(bounds, std::greater_equal()) != bounds.end())) {
    return Refuse("option_bounds",
                  "option_bounds must be positions of the prompt behind the first, ascending");
  }
  SKEIN_RETURN_IF_ERROR(CheckSchema(std::ssize(request.prompt), decide));
  return CheckRange("question_type", decide.question_type, 0, kNumQuestionTypes - 1);
}

// Whether the model can give the requested output.
Status CheckHead(const EngineLimits& limits, const OutputSpec& output) {
  const auto* embed = std::get_if<EmbedSpec>(&output);
  const bool embeds = embed != nullptr;
  const bool classifies = std::holds_alternative<ClassifySpec>(output);
  const bool decides = std::holds_alternative<DecideSpec>(output);
  const char* lacking = nullptr;
  if (embeds && !limits.embeds) lacking = "embeddings";
  if (embeds && embed->all_tokens && limits.max_whole_prompt_len == 0) {
    lacking = "embeddings of single tokens: it does not read prompts whole";
  }
  if (classifies && !limits.classifies) lacking = "a classification head";
  if (decides && !limits.decides) lacking = "a decision head";
  if (!embeds && !classifies && !decides && !limits.generates)
    lacking = "an output matrix over its tokens";
  if (lacking == nullptr) return Status::Ok();
  return {StatusCode::kUnsupported, fmt::format("the model does not have {}", lacking), "model"};
}

}  // namespace

Status ValidateRequest(const EngineLimits& limits, const Request& request) {
  SKEIN_RETURN_IF_ERROR(CheckHead(limits, request.output));
  SKEIN_RETURN_IF_ERROR(CheckTokens("prompt", request.prompt, limits.vocab_size));
  if (request.second_segment_begin) {
    SKEIN_RETURN_IF_ERROR(CheckRange("second_segment_begin", *request.second_segment_begin, 0,
                                     static_cast<double>(request.prompt.size())));
  }
  if (request.num_attended) {
    SKEIN_RETURN_IF_ERROR(CheckRange("num_attended", *request.num_attended, 1,
                                     static_cast<double>(request.prompt.size())));
  }
  if (request.prompt_logprobs) SKEIN_RETURN_IF_ERROR(CheckPromptLogprobs(limits, request));
  if (request.generates()) return CheckGenerate(limits, request);
  if (const auto* decide = std::get_if<DecideSpec>(&request.output)) {
    return CheckDecide(request, *decide);
  }
  const auto* labels = std::get_if<LabelSpec>(&request.output);
  return labels != nullptr ? CheckLabels(limits, *labels) : Status::Ok();
}

}  // namespace skein
