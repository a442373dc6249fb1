#include "sched/arrival.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sched/preemption/preemption.h"

namespace skein {

int32_t BudgetOf(const SchedulerConfig& config, const Request& request, int64_t prompt_len) {
  if (!request.generates()) return 0;
  const int64_t room = config.max_model_len - prompt_len;
  return static_cast<int32_t>(std::min<int64_t>(request.generate().max_tokens, room));
}

ExecutionClass ClassOf(const SchedulerConfig& config, const Request& request, int64_t prompt_len) {
  return BudgetOf(config, request, prompt_len) <= 1 && !config.force_decode_path
             ? ExecutionClass::kOneShot
             : ExecutionClass::kDecode;
}

int64_t SizeOf(const SchedulerConfig& config, const Request& request, int64_t prompt_len) {
  return ClassOf(config, request, prompt_len) == ExecutionClass::kDecode
             ? BudgetOf(config, request, prompt_len)
             : prompt_len;
}

TimeUs MaxWaitUs(const Request& request, TimeUs max_wait_us) {
  return request.timeout_us ? std::max<TimeUs>(1, *request.timeout_us / 2) : max_wait_us;
}

namespace {

// Whether the request's output needs every hidden state of the prompt in one pass.
bool RunsWhole(const SchedulerConfig& config, const Request& request) {
  return config.max_whole_prompt_len > 0 && !request.generates() &&
         !std::holds_alternative<LabelSpec>(request.output);
}

// The number of last tokens of the prompt that must run in one row: from the first token that a
// decision reads.
int32_t TailOf(const Request& request) {
  const auto* decide = std::get_if<DecideSpec>(&request.output);
  if (decide == nullptr || decide->markers.empty()) return 1;
  const int32_t first = std::min(decide->markers.front(), decide->summary);
  return static_cast<int32_t>(request.prompt.size()) - first;
}

// The first position whose log-probability is wanted; the prompt's length if there is none.
int32_t FirstPromptLogprob(const Request& request) {
  const auto prompt_len = static_cast<int32_t>(request.prompt.size());
  if (!request.prompt_logprobs) return prompt_len;
  return std::min(std::max(request.prompt_logprobs->start, 1), prompt_len);
}

Status RefuseRequest(const char* field, std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message), field};
}

Status CheckPromptLength(const SchedulerConfig& config, const Request& request) {
  const int64_t prompt_len = std::ssize(request.prompt);
  if (RunsWhole(config, request) && prompt_len > config.max_whole_prompt_len) {
    return RefuseRequest("prompt",
                         fmt::format("prompt has {} tokens; what this model reads it reads of a "
                                     "prompt in one step, which takes at most {} tokens "
                                     "(max_num_batched_tokens raises that)",
                                     prompt_len, config.max_whole_prompt_len));
  }
  if (!RunsWhole(config, request) && TailOf(request) > MaxTailLen(config)) {
    return RefuseRequest("prompt",
                         fmt::format("the part of the prompt that a decision reads has {} tokens; "
                                     "one step takes at most {} (max_num_batched_tokens raises "
                                     "that)",
                                     TailOf(request), MaxTailLen(config)));
  }
  if (!request.generates()) {
    if (prompt_len >= 1 && prompt_len <= config.max_model_len) return Status::Ok();
    return RefuseRequest("prompt",
                         fmt::format("prompt has {} tokens, must have at least 1 and at most "
                                     "the model's context of {} tokens",
                                     prompt_len, config.max_model_len));
  }
  if (prompt_len >= 1 && prompt_len < config.max_model_len) return Status::Ok();
  return RefuseRequest("prompt",
                       fmt::format("prompt has {} tokens, must have at least 1 and fewer than "
                                   "the model's context of {} tokens",
                                   prompt_len, config.max_model_len));
}

Status CheckGenerate(const SchedulerConfig& config, const GenerateSpec& generate) {
  if (generate.max_tokens < 0) {
    return RefuseRequest("max_tokens",
                         fmt::format("max_tokens is {}, must be at least 0", generate.max_tokens));
  }
  const int32_t n = generate.num_samples;
  if (n >= 1 && n <= config.max_num_seqs) return Status::Ok();
  return RefuseRequest("n", fmt::format("n is {}, must be in [1, {}]", n, config.max_num_seqs));
}

}  // namespace

Status CheckFits(const SchedulerConfig& config, const Request& request) {
  const int64_t prompt_len = std::ssize(request.prompt);
  SKEIN_RETURN_IF_ERROR(CheckPromptLength(config, request));
  if (request.generates()) SKEIN_RETURN_IF_ERROR(CheckGenerate(config, request.generate()));
  if (request.adapter_id < 0 || request.adapter_id >= config.num_adapters) {
    return RefuseRequest("adapter_id", fmt::format("adapter_id is {}, must be in [0, {})",
                                                   request.adapter_id, config.num_adapters));
  }
  if (config.policies.retention != Retention::kAll &&
      ClassOf(config, request) == ExecutionClass::kOneShot) {
    return Status::Ok();  // needs no block
  }
  // The keys and values of the last drawn token are never computed.
  const int32_t budget = BudgetOf(config, request);
  const int32_t num_blocks = BlocksFor(prompt_len + std::max(0, budget - 1));
  if (num_blocks > config.num_kv_blocks) {
    const bool prompt_fits = BlocksFor(prompt_len) <= config.num_kv_blocks;
    return RefuseRequest(
        prompt_fits ? "max_tokens" : "prompt",
        fmt::format("prompt of {} tokens with up to {} output tokens needs {} KV blocks "
                    "of {} tokens, there are {}: {} tokens together would fit",
                    prompt_len, budget, num_blocks, kBlockTokens, config.num_kv_blocks,
                    int64_t{config.num_kv_blocks} * kBlockTokens));
  }
  return Status::Ok();
}

std::unique_ptr<RequestRecord> MakeRecord(const SchedulerConfig& config, RequestId id,
                                          uint64_t arrival, Request request, TimeUs now_us) {
  auto record = std::make_unique<RequestRecord>();
  record->id = id;
  record->arrival = arrival;
  record->prompt_len = static_cast<int32_t>(request.prompt.size());
  record->budget = BudgetOf(config, request);
  record->execution_class = ClassOf(config, request);
  record->whole = RunsWhole(config, request);
  record->tail_len = record->whole ? 1 : TailOf(request);
  record->next_prompt_logprob = FirstPromptLogprob(request);
  record->decodes_in_own_steps = StopsSteps(config) && request.slo_tpot_us.has_value();
  record->num_live = NumSamples(request);
  record->live.assign(record->num_live, true);
  if (request.generates() && request.generate().grammar != nullptr) {
    for (int32_t i = 0; i < record->num_live; ++i) {
      record->grammar_states.push_back(request.generate().grammar->NewState());
    }
  }
  record->times.arrival_us = now_us;
  auto sequence = std::make_unique<Sequence>(
      record.get(), 0,
      PrefixScope{.adapter_id = request.adapter_id, .cache_salt = request.cache_salt});
  sequence->tokens = std::move(request.prompt);
  sequence->draws.reserve(record->num_live);
  const int64_t length = record->prompt_len + record->budget;
  if (record->execution_class == ExecutionClass::kDecode) sequence->tokens.reserve(length);
  sequence->blocks.Reserve(length);
  record->request = std::move(request);
  record->sequences.push_back(std::move(sequence));
  return record;
}

}  // namespace skein
