#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "model/config/config.h"

namespace skein {

// The experts of each token of a chunk, and their weights (docs/numerics.md, "Experts"). A *slot*
// is one token at one of its experts. Slots are grouped by expert, and within an expert ordered by
// token:
//
//   expert 0        expert 1   expert 2 (none)   expert 3
//   | t0 | t2 | t5 | t1 |                         | t0 | t1 | ... num_tokens * experts_per_token
//
// Nothing is allocated after construction.
class ExpertRoutes {
 public:
  // Empty for a model without experts.
  ExpertRoutes(const ModelConfig& config, int32_t max_tokens);

  // Chooses the experts of `token` by its router's logits [num_experts]. `scratch` has room for
  // [num_experts]. Threads may choose for different tokens at the same time.
  void Choose(int32_t token, const float* logits, float* scratch, const Kernels& kernels);
  // Assigns slots to tokens [0, num_tokens) at their chosen experts. O(tokens * experts_per_token).
  void Group(int32_t num_tokens);

  // One expert of a token; a token's routes are in ascending order of experts.
  struct Route {
    int32_t expert = 0;
    float weight = 0;
    int32_t slot = 0;
  };
  std::span<const Route> routes(int32_t token) const {
    return std::span(routes_).subspan(size_t(token) * per_token_, per_token_);
  }
  int32_t first_slot(int32_t expert) const { return begin_[expert]; }
  int32_t num_slots(int32_t expert) const { return begin_[expert + 1] - begin_[expert]; }

 private:
  const int32_t num_experts_;
  const int32_t per_token_;
  const bool norm_weights_;
  std::vector<Route> routes_;   // [max_tokens, per_token]
  std::vector<int32_t> begin_;  // [num_experts + 1]
  std::vector<int32_t> next_;   // [num_experts], for Group
};

}  // namespace skein
