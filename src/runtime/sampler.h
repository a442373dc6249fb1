#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "kernels/kernels.h"
#include "runtime/candidate_set.h"
#include "sched/plan.h"

namespace skein {

// Draws tokens from logits as SamplingParams says. What a draw yields depends on its logits and its
// DrawSpec alone; equal values are told apart by the lower id. Cost is O(vocab), never a sort of
// it. Thread rule: calls with different `thread` may overlap.
class Sampler {
 public:
  // `kernels` must outlive the sampler.
  Sampler(const Kernels* kernels, int32_t vocab, int num_threads);

  // logits [vocab], left as they are; `thread` in [0, num_threads) picks the scratch memory. With
  // NaN or +inf among the logits, or nothing but -inf, result->finite is false and no token drawn.
  void Draw(const DrawSpec& spec, const float* logits, int thread, DrawResult* result);

  // The log-probability of `token`, and of the `num_top` most likely beside it, into everything but
  // result->position. False, with nothing but the token filled in, where Draw would not be finite.
  // Needs no memory but that of the result.
  bool Logprob(TokenId token, int32_t num_top, const float* logits, PromptLogprob* result) const;

 private:
  struct Scratch {
    explicit Scratch(int32_t vocab) : logits(vocab), counts(vocab), candidates(vocab) {
      next_of_choices.reserve(kMaxChoices);
    }
    std::vector<float> logits;    // [vocab]: as changed by the parameters, then weights
    std::vector<int32_t> counts;  // [vocab]: zero between draws
    CandidateSet candidates;
    std::vector<TokenId> next_of_choices;
  };

  TokenId Pick(const DrawSpec& spec, const float* logits, Scratch& scratch) const;
  // The tokens that may come; empty: all.
  std::span<const TokenId> AllowedIds(const DrawSpec& spec, Scratch& scratch) const;
  void ApplyBias(const SamplingParams& params, std::span<const TokenId> allowed,
                 const float* logits, Scratch& scratch) const;
  void ApplyPenalties(const DrawSpec& spec, Scratch& scratch) const;
  void MaskStops(const DrawSpec& spec, Scratch& scratch) const;
  TokenId DrawWeighted(const DrawSpec& spec, float max, Scratch& scratch) const;
  TokenLogprob LogprobOf(TokenId token, const float* logits, float log_sum_exp) const;
  void FillTop(const float* logits, float log_sum_exp, int32_t count,
               std::vector<TokenLogprob>* top) const;

  const Kernels* kernels_;
  const int32_t vocab_;
  std::vector<Scratch> scratch_;  // [num_threads]
};

}  // namespace skein
