#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/executor.h"
#include "kernels/kernels.h"
#include "sched/plan.h"

namespace skein {

// Memory of one drawing thread; grows to the vocabulary once.
struct SamplerScratch {
  std::vector<float> logits;   // [vocab] adjusted
  std::vector<float> weights;  // [vocab] exp((logit - max) / temperature)
  std::vector<std::pair<float, TokenId>> candidates;
  std::vector<TokenId> seen;
};

// Draws tokens from logits as `SamplingParams` says. Every result is a function of the logits, the
// draw and its history alone: the same under any load. No state; any thread, with its own scratch.
class Sampler {
 public:
  // `kernels` must outlive the sampler.
  Sampler(const Kernels* kernels, int32_t vocab_size);

  // logits: [vocab], left as they are. Logits with NaN or +inf, or with nothing above -inf left to
  // draw from, give `finite` = false.
  void Draw(const DrawSpec& draw, std::span<const float> logits, SamplerScratch* scratch,
            DrawResult* result) const;

 private:
  bool NeedsAdjustment(const DrawSpec& draw) const;
  // scratch->logits = logits after bias, allowed ids, stop-id mask and penalties.
  void Adjust(const DrawSpec& draw, std::span<const float> logits, SamplerScratch* scratch) const;
  // A token from the adjusted logits at a temperature above 0. `max`: the largest of them.
  TokenId DrawAtTemperature(const DrawSpec& draw, std::span<const float> logits, float max,
                            SamplerScratch* scratch) const;
  void FillLogprobs(std::span<const float> logits, float log_sum_exp, int32_t num_top,
                    SamplerScratch* scratch, OutputToken* token) const;

  const Kernels* kernels_;
  int32_t vocab_size_;
};

}  // namespace skein
