#include "model/decision_head.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

constexpr int32_t kNumFeatures = DecisionHeadWeights::kActionFeatures;

std::array<float, kNumFeatures> FeaturesOf(std::span<const float> options) {
  constexpr double kLeastProbability = 1e-9;  // the least probability in a logarithm
  constexpr double kMostOptions = 255;
  const double max = *std::ranges::max_element(options);
  double sum = 0;
  for (const float logit : options) sum += std::exp(logit - max);
  double first = 0, second = 0, entropy = 0;
  for (const float logit : options) {
    const double p = std::exp(logit - max) / sum;
    second = std::max(second, std::min(first, p));
    first = std::max(first, p);
    entropy -= p * std::log(std::max(p, kLeastProbability));
  }
  const auto count = std::max(2.0, static_cast<double>(options.size()));
  return {static_cast<float>(first), static_cast<float>(first - second),
          static_cast<float>(entropy / std::log(count)), static_cast<float>(count / kMostOptions)};
}

}  // namespace

void AppendActionLogits(const DecisionHeadWeights& head, const Kernels& kernels,
                        std::span<const float> options, float* sums, std::vector<float>* out) {
  SKEIN_CHECK(!options.empty());
  const std::array<float, kNumFeatures> features = FeaturesOf(options);
  const float* weight = head.action_features.data();
  for (int32_t i = 0; i < kActionWidth; ++i, weight += kNumFeatures) {
    for (int32_t f = 0; f < kNumFeatures; ++f) sums[i] += weight[f] * features[f];
  }
  kernels.Activate(Activation::kGelu, sums, kActionWidth, sums, DType::kF32);
  const float* row = head.action_out.data();
  for (const float bias : head.action_out_bias) {
    float logit = bias;
    for (int32_t i = 0; i < kActionWidth; ++i) logit += row[i] * sums[i];
    out->push_back(logit);
    row += kActionWidth;
  }
}

}  // namespace skein
