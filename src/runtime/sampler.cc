#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace skein {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

int64_t NumOutputs(const DrawSpec& spec) {
  return static_cast<int64_t>(spec.history.size()) - spec.prompt_len;
}

bool HasPenalties(const SamplingParams& p) {
  return p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
}

// The limit of small temperatures; a denormal one would count as zero in a division.
bool IsGreedy(const SamplingParams& p) { return p.temperature < std::numeric_limits<float>::min(); }

bool MustMaskStops(const DrawSpec& spec) {
  return NumOutputs(spec) < spec.generate->min_tokens && !spec.generate->stop_token_ids.empty();
}

}  // namespace

Sampler::Sampler(const Kernels* kernels, int32_t vocab, int num_threads)
    : kernels_(kernels), vocab_(vocab) {
  SKEIN_CHECK(vocab >= 1 && num_threads >= 1);
  scratch_.reserve(num_threads);
  for (int i = 0; i < num_threads; ++i) scratch_.emplace_back(vocab);
}

void Sampler::Draw(const DrawSpec& spec, const float* logits, int thread, DrawResult* result) {
  Scratch& scratch = scratch_[thread];
  const SamplingParams& params = spec.generate->sampling;
  result->token.top_logprobs.clear();
  result->token.named_logprobs.clear();
  const Kernels::LogSum sum = kernels_->LogSumExp(logits, vocab_);
  result->finite = sum.finite;
  if (!sum.finite) {
    result->token.token = 0;
    return;
  }
  const bool untouched = IsGreedy(params) && params.logit_bias.empty() &&
                         params.allowed_token_ids.empty() && spec.generate->choices.empty() &&
                         !HasPenalties(params) && !MustMaskStops(spec);
  result->token.token = untouched ? sum.argmax : Pick(spec, logits, scratch);
  if (spec.generate->num_logprobs) {
    OutputToken& token = result->token;
    token.chosen = LogprobOf(token.token, logits, sum.log_sum_exp);
    for (const TokenId id : spec.generate->logprob_token_ids) {
      token.named_logprobs.push_back({id, logits[id] - sum.log_sum_exp, 0});
    }
    FillTop(logits, sum.log_sum_exp, *spec.generate->num_logprobs, &token.top_logprobs);
  }
}

bool Sampler::Logprob(TokenId token, int32_t num_top, const float* logits,
                      PromptLogprob* result) const {
  result->chosen = {.token = token};
  result->top_logprobs.clear();
  const Kernels::LogSum sum = kernels_->LogSumExp(logits, vocab_);
  if (!sum.finite) return false;
  result->chosen = LogprobOf(token, logits, sum.log_sum_exp);
  FillTop(logits, sum.log_sum_exp, num_top, &result->top_logprobs);
  return true;
}

TokenId Sampler::Pick(const DrawSpec& spec, const float* logits, Scratch& scratch) const {
  const SamplingParams& params = spec.generate->sampling;
  const std::span<const TokenId> allowed = AllowedIds(spec, scratch);
  ApplyBias(params, allowed, logits, scratch);
  if (HasPenalties(params)) ApplyPenalties(spec, scratch);
  if (MustMaskStops(spec)) MaskStops(spec, scratch);
  const auto best = std::max_element(scratch.logits.begin(), scratch.logits.end());
  const auto argmax = static_cast<TokenId>(best - scratch.logits.begin());
  if (std::isinf(*best) && *best < 0 && !allowed.empty()) {
    // The model itself gives every allowed token the probability zero.
    return *std::ranges::min_element(allowed);
  }
  if (IsGreedy(params) || std::isinf(*best)) return argmax;
  return DrawWeighted(spec, *best, scratch);
}

std::span<const TokenId> Sampler::AllowedIds(const DrawSpec& spec, Scratch& scratch) const {
  if (spec.generate->choices.empty()) return spec.generate->sampling.allowed_token_ids;
  const std::span<const TokenId> output = spec.history.subspan(spec.prompt_len);
  scratch.next_of_choices.clear();
  for (const std::vector<TokenId>& choice : spec.generate->choices) {
    if (GoesOn(choice, output)) scratch.next_of_choices.push_back(choice[output.size()]);
  }
  SKEIN_CHECK(!scratch.next_of_choices.empty());
  return scratch.next_of_choices;
}

void Sampler::ApplyBias(const SamplingParams& params, std::span<const TokenId> allowed,
                        const float* logits, Scratch& scratch) const {
  if (allowed.empty()) {
    std::copy_n(logits, vocab_, scratch.logits.begin());
  } else {
    std::fill(scratch.logits.begin(), scratch.logits.end(), kMinusInf);
    for (const TokenId id : allowed) scratch.logits[id] = logits[id];
  }
  for (const auto& [id, bias] : params.logit_bias) scratch.logits[id] += bias;
}

void Sampler::ApplyPenalties(const DrawSpec& spec, Scratch& scratch) const {
  const SamplingParams& params = spec.generate->sampling;
  const auto outputs = spec.history.subspan(spec.prompt_len);
  for (const TokenId id : outputs) ++scratch.counts[id];
  // Every distinct token of the history once: -1 marks a prompt token that has had its turn, and
  // what has been counted is negated with its turn.
  for (const TokenId id : spec.history) {
    int32_t& count = scratch.counts[id];
    if (count < 0) continue;
    float& logit = scratch.logits[id];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (count > 0) {
      logit -= params.presence_penalty + static_cast<float>(count) * params.frequency_penalty;
    }
    count = count > 0 ? -count : -1;
  }
  for (const TokenId id : spec.history) scratch.counts[id] = 0;
}

void Sampler::MaskStops(const DrawSpec& spec, Scratch& scratch) const {
  const std::vector<TokenId>& stops = spec.generate->stop_token_ids;
  const auto is_stop = [&](TokenId id) {
    return std::find(stops.begin(), stops.end(), id) != stops.end();
  };
  // Where only stop tokens are allowed there is nothing else to draw: they stay.
  const std::vector<TokenId>& allowed = spec.generate->sampling.allowed_token_ids;
  if (!allowed.empty() && std::all_of(allowed.begin(), allowed.end(), is_stop)) return;
  for (const TokenId id : stops) {
    if (id >= 0 && id < vocab_) scratch.logits[id] = kMinusInf;  // a config may name others
  }
}

TokenId Sampler::DrawWeighted(const DrawSpec& spec, float max, Scratch& scratch) const {
  const SamplingParams& params = spec.generate->sampling;
  // Weights relative to the largest, which is 1: a small temperature cannot overflow.
  std::vector<float>& weights = scratch.logits;
  for (float& w : weights) w = (w - max) / params.temperature;
  kernels_->ExpShifted(weights.data(), 0.0f, vocab_, weights.data());
  CandidateSet& set = scratch.candidates;
  set.Clear();
  for (int32_t id = 0; id < vocab_; ++id) {
    if (weights[id] > 0) set.Add(id, weights[id]);
  }
  if (params.top_k > 0) set.KeepLargest(params.top_k);
  if (params.top_p < 1.0f) set.KeepMass(double{params.top_p} * set.Total());
  if (params.min_p > 0.0f) set.KeepAtLeast(params.min_p);
  const double random = UniformAt(params.seed, spec.sample, NumOutputs(spec));
  const double target = random * set.Total();
  double sum = 0;
  for (const CandidateSet::Candidate& c : set.candidates()) {
    sum += c.value;
    if (sum > target) return c.id;
  }
  return set.candidates().back().id;
}

TokenLogprob Sampler::LogprobOf(TokenId token, const float* logits, float log_sum_exp) const {
  const float chosen = logits[token];
  int32_t rank = 1;
  for (int32_t id = 0; id < vocab_; ++id) {
    rank += logits[id] > chosen || (logits[id] == chosen && id < token);
  }
  return {token, chosen - log_sum_exp, rank};
}

void Sampler::FillTop(const float* logits, float log_sum_exp, int32_t count,
                      std::vector<TokenLogprob>* top) const {
  if (count == 0) return;
  const auto better = [&](const TokenLogprob& a, const TokenLogprob& b) {
    return logits[a.token] != logits[b.token] ? logits[a.token] > logits[b.token]
                                              : a.token < b.token;
  };
  // A heap of the best so far, the worst of them first. Ids ascend: an equal one is no better.
  for (int32_t id = 0; id < vocab_; ++id) {
    if (std::ssize(*top) == count) {
      if (!(logits[id] > logits[top->front().token])) continue;
      std::pop_heap(top->begin(), top->end(), better);
      top->pop_back();
    }
    top->push_back({id, logits[id] - log_sum_exp, 0});
    std::push_heap(top->begin(), top->end(), better);
  }
  std::sort_heap(top->begin(), top->end(), better);
  int32_t next_rank = 0;
  for (TokenLogprob& entry : *top) entry.rank = ++next_rank;
}

}  // namespace skein
