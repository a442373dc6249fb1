#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/paged_array.h"
#include "engine/executor.h"
#include "kernels/kernels.h"
#include "runtime/candidate_set.h"
#include "sched/plan.h"

namespace skein {

// The numbers of a random draw, for a device that makes it (docs/numerics.md, "Draws").
struct RandomDraw {
  float temperature = 1.0f;  // a normal number above 0
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  double random = 0;  // in [0, 1), a multiple of 2^-53
};

// Draws tokens from logits as SamplingParams says (docs/numerics.md, "Draws"). A draw depends only
// on its logits and its DrawSpec. Among equal values, the lower id comes first. The cost is a few
// passes over the vocabulary, never a sort: a bound first selects the tokens that the cut-offs may
// keep. Thread rule: calls with different `thread` may overlap.
class Sampler {
 public:
  // `kernels` must outlive the sampler.
  Sampler(const Kernels* kernels, int32_t vocab, int num_threads);

  // Draws a token. logits [vocab] are not changed; `thread` in [0, num_threads) selects the scratch
  // memory. If a logit is NaN or +inf, or all are -inf, result->finite is false and no token is
  // drawn.
  void Draw(const DrawSpec& spec, const float* logits, int thread, DrawResult* result);

  // Whether a draw needs no more of its logits than the largest: a greedy one, from logits as they
  // are, without log-probabilities.
  static bool NeedsLargestAlone(const DrawSpec& spec);
  // The numbers of a random draw that needs its logits as they are, and these alone, without
  // log-probabilities; nullopt for other draws.
  static std::optional<RandomDraw> RandomDrawOf(const DrawSpec& spec);
  // The result of a greedy draw, as Draw has it. `largest` is Kernels::FindLargest's; its max is
  // not read. Or that of a random draw, whose token is `argmax` then.
  static void DrawLargest(const Kernels::Largest& largest, DrawResult* result);

  // Computes the log-probability of `token`, and the `num_top` most likely tokens, into everything
  // but result->position. If Draw would not be finite, returns false and fills in the token alone.
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
          candidates(vocab),
          mask((vocab + 31) / 32) {
      next_of_choices.reserve(kMaxChoices);
    }
    PagedArray<float> values;        // [vocab]: logits after the parameters, then weights
    PagedArray<int32_t> counts;      // [vocab]: zero between draws
    PagedArray<int32_t> ids;         // [vocab]
    std::vector<float> group_max;    // [groups] of the logits to draw from
    std::vector<float> ordered_max;  // the same maxima in another order
    std::vector<double> group_sums;  // [groups] of the weights
    CandidateSet candidates;
    std::vector<TokenId> next_of_choices;
    std::vector<uint32_t> mask;  // [ceil(vocab / 32)]: the tokens that a grammar allows
  };

  // Draws one token. `largest` and scratch.group_max belong to `logits`. scratch.group_max is
  // overwritten.
  TokenId Pick(const DrawSpec& spec, const float* logits, Kernels::Largest largest,
               Scratch& scratch) const;
  // Writes the logits, changed by the parameters, to scratch.values. Returns the lowest allowed
  // token; nullopt if all are allowed.
  std::optional<TokenId> ChangeLogits(const DrawSpec& spec, const float* logits,
                                      Scratch& scratch) const;
  // Copies the logits of the allowed tokens to scratch.values and sets the other values to -inf.
  // Returns the lowest allowed token; nullopt if all are allowed.
  std::optional<TokenId> CopyAllowed(const DrawSpec& spec, const float* logits,
                                     Scratch& scratch) const;
  std::span<const TokenId> AllowedIds(const DrawSpec& spec, Scratch& scratch) const;
  void ApplyPenalties(const DrawSpec& spec, Scratch& scratch) const;
  void MaskStops(const DrawSpec& spec, Scratch& scratch) const;

  TokenId DrawWeighted(const DrawSpec& spec, const float* logits, float max,
                       Scratch& scratch) const;
  // Draws among all tokens by the weights in scratch.values.
  TokenId DrawOfAll(double random, const Scratch& scratch) const;
  // Fills scratch.candidates with the elements of x [vocab] that are at least `floor`. group_max:
  // as for Kernels::FindAtLeast.
  void Take(const float* x, float floor, const float* group_max, Scratch& scratch) const;
  // Fills scratch.candidates with the `count` best of `logits`, none below `least`.
  // scratch.group_max belongs to `logits`.
  void TakeLargest(const float* logits, int32_t count, float least, Scratch& scratch) const;
  // Fills scratch.candidates with those weights in scratch.values that top_p and min_p may keep.
  // `total` is the sum of all weights.
  void TakeLikely(const SamplingParams& params, double total, Scratch& scratch) const;
  // Turns the candidates' logits into weights.
  void WeighCandidates(float max, float temperature, Scratch& scratch) const;

  TokenLogprob LogprobOf(TokenId token, const float* logits, float log_sum_exp) const;
  // Writes the `count` most likely tokens to *top. scratch.group_max belongs to `logits`.
  void FillTop(const float* logits, float log_sum_exp, int32_t count, Scratch& scratch,
               std::vector<TokenLogprob>* top) const;

  const Kernels* kernels_;
  const int32_t vocab_;
  std::vector<Scratch> scratch_;  // [num_threads]
};

}  // namespace skein
