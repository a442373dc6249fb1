#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "skein/status.h"

namespace skein {

class TokenGrammar;  // skein/token_grammar.h

using TokenId = int32_t;
using RequestId = uint64_t;
// Microseconds on the engine's clock (base/clock.h). Never wall time.
using TimeUs = int64_t;

// The least repetition penalty. Logits are divided by the penalty; with a smaller one, they could
// exceed the range of a float.
inline constexpr float kMinRepetitionPenalty = 0x1p-7f;

// The rule that draws the next token from the logits. It applies in this order: logit bias and
// allowed ids or grammar, repetition, presence and frequency penalties, temperature, top-k, top-p,
// min-p, draw.
struct SamplingParams {
  float temperature = 1.0f;         // [0, 2]; 0 is greedy: the largest logit, ties to the lowest id
  int32_t top_k = 0;                // keep the k largest; 0 keeps all
  float top_p = 1.0f;               // (0, 1]; 1 keeps all
  float min_p = 0.0f;               // [0, 1]; drop tokens below min_p * p_max
  float repetition_penalty = 1.0f;  // [kMinRepetitionPenalty, inf); over prompt and output tokens
  float presence_penalty = 0.0f;    // [-2, 2]; over output tokens
  float frequency_penalty = 0.0f;   // [-2, 2]; over output tokens
  std::vector<std::pair<TokenId, float>> logit_bias;  // distinct ids, [-100, 100]
  std::vector<TokenId> allowed_token_ids;             // empty: all
  // Random numbers depend only on (seed, sample index, position), never on the load.
  uint64_t seed = 0;
};

// A continuation.
struct GenerateSpec {
  int32_t max_tokens = 16;  // >= 0; the effective budget is min(max_tokens, room in the context)
  int32_t min_tokens = 0;   // stop ids are masked out until the output has this length
  SamplingParams sampling;
  // Generation ends after one of these ids; the id is part of the output. Empty with ignore_eos.
  std::vector<TokenId> stop_token_ids;
  // nullopt: none. 0: the chosen token's. k: also those of the k most likely tokens. Natural
  // logarithms of the unmodified distribution (before penalties and temperature).
  std::optional<int32_t> num_logprobs;
  // With num_logprobs: tokens whose log-probabilities are also given, at every position of the
  // output.
  std::vector<TokenId> logprob_token_ids;  // [0, kMaxLabels], distinct
  // If not empty, the output is exactly one of these token sequences. No choice may be the
  // beginning of another. min_tokens, stop_token_ids and allowed_token_ids must then be unset, and
  // max_tokens must suffice for each choice.
  std::vector<std::vector<TokenId>> choices;  // [0, kMaxChoices], each [1, max_tokens]
  // If not null, the output is a text of this grammar, followed by a stop token. stop_token_ids
  // must hold the model's end tokens. min_tokens, allowed_token_ids and choices must be unset.
  std::shared_ptr<const TokenGrammar> grammar;
  int32_t num_samples = 1;  // n: independent continuations of one prompt
};
inline constexpr int32_t kMaxLabels = 1024;
inline constexpr int32_t kMaxChoices = 255;

// The logits of a few tokens at the last position: a decision in one pass. Only these rows of the
// output matrix are computed, unless `want_log_sum_exp` is set.
struct LabelSpec {
  std::vector<TokenId> tokens;    // [1, kMaxLabels], distinct
  bool want_log_sum_exp = false;  // over the whole vocabulary, for probabilities beyond the labels
};

// The model's raw embedding: the pooled hidden state after the further layers of the model's
// embedding head. The caller normalizes it and cuts it to fewer dimensions.
struct EmbedSpec {
  // Asks instead for the hidden states of all tokens behind the final norm, one after the other.
  // Only for models that read prompts whole (EngineLimits::max_whole_prompt_len).
  bool all_tokens = false;
};

// The raw outputs of the model's classification or reward head [num_classes], before softmax or
// sigmoid.
struct ClassifySpec {};

// The questions that a joint head answers from one prompt. Question q has option_counts[q] of the
// options in DecideSpec::markers, in order.
struct JointSchema {
  std::vector<int32_t> types;                   // [questions], as DecideSpec::question_type
  std::vector<int32_t> text_begins, text_ends;  // [questions]: the tokens of the instructions
  std::vector<int32_t> option_counts;           // [questions], each >= 1
  std::vector<int32_t> option_ends;             // [options]: option i is [markers[i], its end)
};

// The raw outputs of a decision model's head: the logit of each option [markers.size()], then the
// logits of its actions [EngineLimits::num_actions].
struct DecideSpec {
  std::vector<int32_t> markers;  // positions of the options' markers, ascending; [1, kMaxLabels]
  int32_t question_type = 0;     // [0, kNumQuestionTypes), in the model's order of the types
  int32_t summary = 0;           // the position that is read for the question as a whole
  // If not empty, options are read side by side and do not attend to each other. Option i is the
  // tokens [option_bounds[i], option_bounds[i + 1]), ascending, behind the first token.
  std::vector<int32_t> option_bounds = {};
  // Only for a joint head, which reads the whole prompt. Without types, the prompt asks one
  // question of question_type, whose text is the token `summary` and whose options are one token
  // each.
  JointSchema schema = {};
};
inline constexpr int32_t kNumQuestionTypes = 3;

// The output that a request asks for, apart from prompt log-probabilities.
using OutputSpec = std::variant<GenerateSpec, LabelSpec, EmbedSpec, ClassifySpec, DecideSpec>;

// The log-probabilities of the prompt's own tokens. They may accompany an output that reads logits
// (GenerateSpec, LabelSpec).
struct PromptLogprobsSpec {
  // The number of most likely tokens to name at each position beside the prompt's own; at most
  // EngineLimits::max_logprobs.
  int32_t num_top = 0;
  // The first position whose log-probability is wanted (0: all; position 0 itself never has one).
  // Tokens before it may come from the prefix cache.
  int32_t start = 0;
};

// Requests that belong together: the questions on one input, the documents of one query. They
// arrive together (Engine::SubmitGroup) and have the same deadline and client.
struct GroupSpec {
  uint64_t id = 0;  // 0: no group; the engine assigns it
  // The number of first tokens that all members share, as far as the caller knows. The engine finds
  // the exact number.
  int32_t parent_prefix_len = 0;
};

// One request. Immutable once submitted.
struct Request {
  // [1, max_model_len) tokens if the request generates, else [1, max_model_len].
  std::vector<TokenId> prompt;
  // The first token of the second segment; only for models with segments (cross-encoders).
  std::optional<int32_t> second_segment_begin;
  // The number of first tokens that all tokens attend to; none attends to the tokens behind them.
  // Unset: all. Only for encoders.
  std::optional<int32_t> num_attended;
  OutputSpec output;
  std::optional<PromptLogprobsSpec> prompt_logprobs;
  GroupSpec group;
  int32_t priority = 0;               // lower runs first
  std::optional<TimeUs> slo_ttft_us;  // wanted time to the first token, from arrival
  std::optional<TimeUs> slo_tpot_us;  // wanted time for each further token
  // The time from arrival after which the client no longer waits for the answer. A request is
  // refused if its answer would probably be late. A request that has waited this long is ended.
  std::optional<TimeUs> timeout_us;
  std::string user;         // the client, for fair queueing and affinity
  uint64_t cache_salt = 0;  // prefixes are shared only between equal salts; 0 is the common pool
  int32_t adapter_id = 0;   // selects the weights; 0 is the base model

  bool generates() const { return std::holds_alternative<GenerateSpec>(output); }
  // REQUIRES: generates().
  GenerateSpec& generate() { return *std::get_if<GenerateSpec>(&output); }
  const GenerateSpec& generate() const { return *std::get_if<GenerateSpec>(&output); }
};

// The number of independent answers to a request.
inline int32_t NumSamples(const Request& request) {
  return request.generates() ? request.generate().num_samples : 1;
}

enum class FinishReason {
  kStop,       // a stop token id; a whole choice; or all requested outputs have been read
  kLength,     // max_tokens or the context is used up
  kCancelled,  // the request was cancelled (Engine::Cancel)
  kError,      // `status` says why; no other request is affected
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;  // natural logarithm
  int32_t rank = 0;   // 1 is the most likely
};

struct OutputToken {
  TokenId token = 0;
  TokenLogprob chosen;                     // valid if num_logprobs is set
  std::vector<TokenLogprob> top_logprobs;  // [num_logprobs], most likely first
  // [logprob_token_ids.size()], in the order of logprob_token_ids. Their ranks are not computed: 0.
  std::vector<TokenLogprob> named_logprobs;
};

// The values that a LabelSpec, an EmbedSpec, a ClassifySpec or a DecideSpec asks for.
struct ReadValues {
  // Logits in the order of the labels; an embedding; class outputs; or options, then actions.
  std::vector<float> values;
  float log_sum_exp = 0;  // if the LabelSpec asks for it: logprob = value - log_sum_exp
  // Only of a sparse embedding: values[i] is the element for ids[i], ascending. All others are 0.
  std::vector<TokenId> ids = {};
};

// One prompt token, and the likely tokens at its position.
struct PromptLogprob {
  int32_t position = 0;                    // position in the prompt, >= 1
  TokenLogprob chosen;                     // the prompt's own token
  std::vector<TokenLogprob> top_logprobs;  // [num_top], most likely first
};

// The times of one request on the engine's clock; 0 for an event that never happened.
struct RequestTimes {
  TimeUs arrival_us = 0;
  TimeUs first_scheduled_us = 0;
  TimeUs first_token_us = 0;
  TimeUs finished_us = 0;
};

// A piece of the answer. Each sample gets any number of outputs with `tokens`, and a last output
// with `finish`.
struct RequestOutput {
  RequestId request = 0;
  int32_t sample = 0;  // [0, num_samples)
  std::vector<OutputToken> tokens;
  // Only in outputs of sample 0. They come in pieces, ascending, and are complete before the
  // sample's first token or `finish`.
  std::vector<PromptLogprob> prompt_logprobs;
  std::optional<ReadValues> read;  // one output has it, with `finish`, if the request does not
                                   // generate
  std::optional<FinishReason> finish;
  Status status;              // not ok if and only if `finish` is FinishReason::kError
  int32_t cached_tokens = 0;  // prompt tokens taken from the prefix cache
  RequestTimes times;         // complete with `finish`
};

// Called on the engine's thread, in order. It must not block. It may call no function of the engine
// except Submit and Cancel, which merely enqueue.
using OutputCallback = std::function<void(RequestOutput)>;

}  // namespace skein
