#include "model/forward/expert_routes.h"

#include <algorithm>

namespace skein {

ExpertRoutes::ExpertRoutes(const ModelConfig& config, int32_t max_tokens)
    : num_experts_(config.num_experts),
      per_token_(config.experts_per_token),
      norm_weights_(config.norm_expert_weights),
      routes_(size_t(max_tokens) * config.experts_per_token),
      begin_(config.num_experts + 1),
      next_(config.num_experts) {}

void ExpertRoutes::Choose(int32_t token, const float* logits, float* scratch,
                          const Kernels& kernels) {
  Route* const chosen = routes_.data() + size_t(token) * per_token_;
  int32_t count = 0;
  // The list is sorted by descending logit, then by ascending expert. If the list is full, a new
  // expert replaces the last one.
  for (int32_t expert = 0; expert < num_experts_; ++expert) {
    if (count == per_token_ && !(logits[expert] > logits[chosen[count - 1].expert])) continue;
    int32_t place = count < per_token_ ? count++ : count - 1;
    for (; place > 0 && logits[expert] > logits[chosen[place - 1].expert]; --place) {
      chosen[place] = chosen[place - 1];
    }
    chosen[place].expert = expert;
  }
  kernels.ExpShifted(logits, logits[chosen[0].expert], num_experts_, scratch);
  std::sort(chosen, chosen + per_token_,
            [](const Route& a, const Route& b) { return a.expert < b.expert; });
  float sum = 0;
  if (norm_weights_) {
    for (int32_t i = 0; i < per_token_; ++i) sum += scratch[chosen[i].expert];
  } else {
    for (int32_t expert = 0; expert < num_experts_; ++expert) sum += scratch[expert];
  }
  for (int32_t i = 0; i < per_token_; ++i) chosen[i].weight = scratch[chosen[i].expert] / sum;
}

void ExpertRoutes::Group(int32_t num_tokens) {
  const std::span<Route> all = std::span(routes_).first(size_t(num_tokens) * per_token_);
  std::ranges::fill(begin_, 0);
  for (const Route& route : all) ++begin_[route.expert + 1];
  for (int32_t expert = 0; expert < num_experts_; ++expert) {
    begin_[expert + 1] += begin_[expert];
    next_[expert] = begin_[expert];
  }
  for (Route& route : all) route.slot = next_[route.expert]++;
}

}  // namespace skein
