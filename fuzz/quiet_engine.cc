#include "quiet_engine.h"

#include <algorithm>

#include "base/check.h"
#include "base/result.h"
#include "engine/validate.h"

namespace skein::fuzz {
namespace {

constexpr int32_t kMostTokens = 24;  // of a sample; then it ends with kLength
constexpr int32_t kEmbeddingSize = 8;
constexpr int32_t kNumClasses = 3;

}  // namespace

EngineLimits QuietEngine::Limits() const {
  return {.vocab_size = vocab_size_,
          .max_model_len = kMaxModelLen,
          .max_num_seqs = 4,
          .max_logprobs = 5,
          .max_queued_requests = 256,
          .max_whole_prompt_len = 1024,
          .generates = true,
          .embeds = true,
          .classifies = true,
          .decides = true,
          .num_actions = 2};
}

Status QuietEngine::Refuse() {
  if (random_.OneIn(40)) {
    return Status(StatusCode::kResourceExhausted, "the queue is full").RetryAfter(3);
  }
  if (random_.OneIn(80)) return {StatusCode::kUnavailable, "the engine is shutting down"};
  return Status::Ok();
}

Status QuietEngine::Submit(Request request, OutputCallback callback, RequestId* id) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  std::vector<RequestId> ids;
  SKEIN_RETURN_IF_ERROR(SubmitGroup(std::move(requests), std::move(callback), &ids));
  *id = ids.front();
  return Status::Ok();
}

Status QuietEngine::SubmitGroup(std::vector<Request> requests, OutputCallback callback,
                                std::vector<RequestId>* ids) {
  for (const Request& request : requests) {
    SKEIN_RETURN_IF_ERROR(ValidateRequest(Limits(), request));
    if (request.prompt.empty() || std::ssize(request.prompt) >= kMaxModelLen) {
      return {StatusCode::kInvalidArgument, "prompt: too short or too long", "prompt"};
    }
  }
  SKEIN_RETURN_IF_ERROR(Refuse());
  ids->clear();
  for (Request& request : requests) {
    Running running;
    running.samples.resize(static_cast<size_t>(NumSamples(request)));
    for (Sample& sample : running.samples) {
      const bool constrained = request.generates() && request.generate().grammar != nullptr;
      if (constrained) sample.grammar = request.generate().grammar->NewState();
    }
    running.request = std::move(request);
    running.callback = callback;
    ids->push_back(next_id_);
    running_.emplace(next_id_++, std::move(running));
  }
  return Status::Ok();
}

void QuietEngine::Cancel(RequestId id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  for (Sample& sample : found->second.samples) sample.cancelled = true;
}

void QuietEngine::CancelSample(RequestId id, int32_t index) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  found->second.samples.at(static_cast<size_t>(index)).cancelled = true;
}

bool QuietEngine::Pump() {
  std::vector<std::pair<OutputCallback, RequestOutput>> outputs;
  for (auto it = running_.begin(); it != running_.end();) {
    Running& running = it->second;
    for (size_t i = 0; i < running.samples.size(); ++i) {
      if (running.samples[i].finished || random_.OneIn(8)) continue;
      outputs.emplace_back(running.callback, Step(&running, i));
      outputs.back().second.request = it->first;
    }
    const bool done = std::ranges::all_of(running.samples, &Sample::finished);
    it = done ? running_.erase(it) : std::next(it);
  }
  for (auto& [callback, output] : outputs) callback(std::move(output));
  return !running_.empty() || !outputs.empty();
}

RequestOutput QuietEngine::Step(Running* running, size_t index) {
  Sample& sample = running->samples[index];
  RequestOutput output;
  output.sample = static_cast<int32_t>(index);
  output.cached_tokens =
      static_cast<int32_t>(random_.Between(0, std::ssize(running->request.prompt)));
  output.times = {1000, 2000, 3000, 0};
  const bool first = index == 0 && sample.num_tokens == 0;
  if (sample.cancelled) {
    output.finish = FinishReason::kCancelled;
  } else if (random_.OneIn(60)) {
    output.finish = FinishReason::kError;
    output.status = Status(StatusCode::kInternal, "a logit is not a number");
  } else {
    if (first) AddPromptLogprobs(running->request, &output);
    running->request.generates() ? Generate(running->request, &sample, &output)
                                 : Read(running->request, &output);
  }
  if (output.finish) output.times.finished_us = 9000;
  sample.finished = output.finish.has_value();
  return output;
}

void QuietEngine::Read(const Request& request, RequestOutput* output) {
  size_t size = kEmbeddingSize;
  if (const auto* labels = std::get_if<LabelSpec>(&request.output)) size = labels->tokens.size();
  if (std::holds_alternative<ClassifySpec>(request.output)) size = kNumClasses;
  if (const auto* decide = std::get_if<DecideSpec>(&request.output)) {
    size = decide->markers.size() + static_cast<size_t>(Limits().num_actions);
  }
  ReadValues read;
  for (size_t i = 0; i < size; ++i) {
    const double value = random_.OneIn(20) ? 0 : 40 * random_.Uniform() - 20;
    read.values.push_back(static_cast<float>(value));
  }
  // Not below any label's logit.
  read.log_sum_exp = 21 + static_cast<float>(random_.Uniform());
  output->read = std::move(read);
  output->finish = FinishReason::kStop;
}

void QuietEngine::AddPromptLogprobs(const Request& request, RequestOutput* output) {
  if (!request.prompt_logprobs) return;
  const auto& wanted = *request.prompt_logprobs;
  for (int32_t at = std::max(1, wanted.start); at < std::ssize(request.prompt); ++at) {
    PromptLogprob entry = {at, Logprob(request.prompt[static_cast<size_t>(at)], 2), {}};
    for (int32_t k = 1; k <= wanted.num_top; ++k) {
      const auto token = static_cast<TokenId>(random_.Between(0, vocab_size_ - 1));
      entry.top_logprobs.push_back(Logprob(token, k));
    }
    output->prompt_logprobs.push_back(std::move(entry));
  }
}

TokenId QuietEngine::NextToken(const GenerateSpec& spec, Sample* sample) {
  const auto position = static_cast<size_t>(sample->num_tokens);
  if (!spec.choices.empty()) return spec.choices.back().at(position);
  if (sample->grammar != nullptr) {
    std::vector<uint32_t> mask(static_cast<size_t>(vocab_size_ + 31) / 32);
    if (sample->grammar->FindNext(sample->output, mask)) {
      std::vector<TokenId> allowed;
      for (TokenId id = 0; id < vocab_size_; ++id) {
        if (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) allowed.push_back(id);
      }
      SKEIN_CHECK(!allowed.empty());
      return allowed[static_cast<size_t>(random_.Between(0, std::ssize(allowed) - 1))];
    }
  }
  if (!spec.sampling.allowed_token_ids.empty()) return spec.sampling.allowed_token_ids.front();
  return static_cast<TokenId>(random_.Between(0, vocab_size_ - 1));
}

void QuietEngine::Generate(const Request& request, Sample* sample, RequestOutput* output) {
  const GenerateSpec& spec = request.generate();
  if (spec.max_tokens == 0) {
    output->finish = FinishReason::kLength;
    return;
  }
  OutputToken token;
  token.token = NextToken(spec, sample);
  if (spec.num_logprobs) {
    token.chosen = Logprob(token.token, 1);
    for (int32_t k = 1; k <= *spec.num_logprobs; ++k) {
      token.top_logprobs.push_back(
          Logprob(static_cast<TokenId>(random_.Between(0, vocab_size_ - 1)), k));
    }
    for (const TokenId id : spec.logprob_token_ids) token.named_logprobs.push_back(Logprob(id, 0));
  }
  sample->output.push_back(token.token);
  ++sample->num_tokens;
  const bool whole = !spec.choices.empty() && sample->num_tokens == std::ssize(spec.choices.back());
  const bool stops = sample->num_tokens > spec.min_tokens &&
                     std::ranges::count(spec.stop_token_ids, token.token) > 0;
  if (whole || stops) {
    output->finish = FinishReason::kStop;
  } else if (sample->num_tokens >= std::min(spec.max_tokens, kMostTokens)) {
    output->finish = FinishReason::kLength;
  }
  output->tokens.push_back(std::move(token));
}

}  // namespace skein::fuzz
