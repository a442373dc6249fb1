#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "kernels/kernels.h"
#include "runtime/candidate_set.h"
#include "sched/plan.h"

namespace skein {

// Draws tokens from logits as SamplingParams says (docs/numerics.md, "Draws"). What a draw yields
// depends on its logits and its DrawSpec alone; equal values are told apart by the lower id. Cost
// is a few passes over the vocabulary, never a sort of it: what the cut-offs may keep is picked out
// by a bound first. Thread rule: calls with different `thread` may overlap.
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
    explicit Scratch(int32_t vocab)
        : values(vocab),
          counts(vocab),
          ids(vocab),
          group_max(NumRowGroups(vocab)),
          ordered_max(NumRowGroups(vocab)),
          group_sums(NumRowGroups(vocab)),
          candidates(vocab) {
      next_of_choices.reserve(kMaxChoices);
    }
    std::vector<float> values;       // [vocab]: logits as changed by the parameters, then weights
    std::vector<int32_t> counts;     // [vocab]: zero between draws
    std::vector<int32_t> ids;        // [vocab]
    std::vector<float> group_max;    // of the logits that are drawn from
    std::vector<float> ordered_max;  // the same in another order
    std::vector<double> group_sums;  // of the weights
    CandidateSet candidates;
    std::vector<TokenId> next_of_choices;
  };

  // `largest` is of logits, like scratch.group_max, which does not survive.
  TokenId Pick(const DrawSpec& spec, const float* logits, Kernels::Largest largest,
               Scratch& scratch) const;
  // The logits as the parameters change them, into scratch.values; returns the tokens that may
  // come, empty: all.
  std::span<const TokenId> ChangeLogits(const DrawSpec& spec, const float* logits,
                                        Scratch& scratch) const;
  std::span<const TokenId> AllowedIds(const DrawSpec& spec, Scratch& scratch) const;
  void ApplyBias(const SamplingParams& params, std::span<const TokenId> allowed,
                 const float* logits, Scratch& scratch) const;
  void ApplyPenalties(const DrawSpec& spec, Scratch& scratch) const;
  void MaskStops(const DrawSpec& spec, Scratch& scratch) const;

  TokenId DrawWeighted(const DrawSpec& spec, const float* logits, float max,
                       Scratch& scratch) const;
  // Of all tokens, by the weights in scratch.values.
  TokenId DrawOfAll(double random, const Scratch& scratch) const;
  // Fills scratch.candidates with those of x [vocab] that are at least `floor`; group_max as
  // Kernels::FindAtLeast takes it.
  void Take(const float* x, float floor, const float* group_max, Scratch& scratch) const;
  // With the `count` best of the logits that scratch.group_max belongs to, none below `least`.
  void TakeLargest(const float* logits, int32_t count, float least, Scratch& scratch) const;
  // With all weights in scratch.values, whose sum is `total`, that top_p and min_p may keep.
  void TakeLikely(const SamplingParams& params, double total, Scratch& scratch) const;
  // Their logits become weights.
  void WeighCandidates(float max, float temperature, Scratch& scratch) const;

  TokenLogprob LogprobOf(TokenId token, const float* logits, float log_sum_exp) const;
  // scratch.group_max is of logits.
  void FillTop(const float* logits, float log_sum_exp, int32_t count, Scratch& scratch,
               std::vector<TokenLogprob>* top) const;

  const Kernels* kernels_;
  const int32_t vocab_;
  std::vector<Scratch> scratch_;  // [num_threads]
};

}  // namespace skein
