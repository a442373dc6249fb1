#pragma once

#include <cstdint>
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
  bool Logprob(TokenId token, int32_t num_top, const float* logits, int thread,
               PromptLogprob* result);

 private:
  struct Scratch {
    explicit Scratch(int32_t vocab) : logits(vocab), counts(vocab), candidates(vocab) {}
    std::vector<float> logits;    // [vocab]: as changed by the parameters, then weights
    std::vector<int32_t> counts;  // [vocab]: zero between draws
    CandidateSet candidates;
  };

  TokenId Pick(const DrawSpec& spec, const float* logits, Scratch& scratch) const;
  void ApplyBias(const SamplingParams& params, const float* logits, Scratch& scratch) const;
  void ApplyPenalties(const DrawSpec& spec, Scratch& scratch) const;
  void MaskStops(const DrawSpec& spec, Scratch& scratch) const;
  TokenId DrawWeighted(const DrawSpec& spec, float max, Scratch& scratch) const;
  TokenLogprob LogprobOf(TokenId token, const float* logits, float log_sum_exp) const;
  void FillTop(const float* logits, float log_sum_exp, int32_t count, Scratch& scratch,
               std::vector<TokenLogprob>* top) const;

  const Kernels* kernels_;
  const int32_t vocab_;
  std::vector<Scratch> scratch_;  // [num_threads]
};

}  // namespace skein
