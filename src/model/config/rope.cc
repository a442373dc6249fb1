#include "model/config/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace skein {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

// Long waves are slowed by `factor`; short waves are kept. Waves between them are interpolated by
// their number of turns within the original context.
double Llama3Frequency(const RopeConfig& rope, double freq) {
  const double turns = rope.original_max_position * freq / kTwoPi;
  if (turns < rope.low_freq_factor) return freq / rope.factor;
  if (turns > rope.high_freq_factor) return freq;
  const double keep =
      (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - keep) * freq / rope.factor + keep * freq;
}

// The fractional index of the pair whose wave turns `turns` times within the original context.
double YarnPairOfTurns(const RopeConfig& rope, int32_t head_dim, double turns) {
  return head_dim * std::log(rope.original_max_position / (turns * kTwoPi)) /
         (2 * std::log(rope.theta));
}

double YarnScale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double YarnAttentionFactor(const RopeConfig& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  // The reference treats zero as absent.
  const double mscale = rope.mscale.value_or(0), all_dim = rope.mscale_all_dim.value_or(0);
  if (mscale != 0 && all_dim != 0) {
    return YarnScale(rope.factor, mscale) / YarnScale(rope.factor, all_dim);
  }
  return YarnScale(rope.factor, 1);
}

// Pairs below the ramp keep their frequency. Pairs above the ramp are slowed by `factor`.
void ApplyYarn(const RopeConfig& rope, int32_t head_dim, std::vector<double>* inv_freq) {
  double low = YarnPairOfTurns(rope, head_dim, rope.beta_fast);
  double high = YarnPairOfTurns(rope, head_dim, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < inv_freq->size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    double& freq = (*inv_freq)[i];
    freq = freq / rope.factor * slowed + freq * (1 - slowed);
  }
}

double LongAttentionFactor(const RopeConfig& rope) {
  if (rope.attention_factor) return *rope.attention_factor;
  if (rope.factor <= 1) return 1;
  return std::sqrt(1 + std::log(rope.factor) / std::log(double(rope.original_max_position)));
}

void ApplyLong(const std::vector<double>& factors, std::vector<double>* inv_freq) {
  SKEIN_CHECK(factors.size() == inv_freq->size());
  for (size_t i = 0; i < factors.size(); ++i) (*inv_freq)[i] /= factors[i];
}

}  // namespace

RopeTable MakeRopeTable(const RopeConfig& rope, int32_t head_dim, int32_t num_positions) {
  head_dim = RotaryDim(rope, head_dim);
  SKEIN_CHECK(head_dim > 0 && head_dim % 2 == 0);
  SKEIN_CHECK(rope.theta >= 1 && rope.factor >= 1);
  RopeTable table;
  for (int32_t i = 0; i < head_dim; i += 2) {
    table.inv_freq.push_back(1 / std::pow(rope.theta, static_cast<double>(i) / head_dim));
  }
  switch (rope.type) {
    case RopeType::kDefault:
      break;
    case RopeType::kLinear:
      for (double& freq : table.inv_freq) freq /= rope.factor;
      break;
    case RopeType::kLlama3:
      SKEIN_CHECK(rope.original_max_position > 0);
      for (double& freq : table.inv_freq) freq = Llama3Frequency(rope, freq);
      break;
    case RopeType::kYarn:
      SKEIN_CHECK(rope.original_max_position > 0 && rope.theta > 1);
      ApplyYarn(rope, head_dim, &table.inv_freq);
      table.attention_factor = YarnAttentionFactor(rope);
      break;
    case RopeType::kLong:
      ApplyLong(num_positions > rope.original_max_position ? rope.long_factors : rope.short_factors,
                &table.inv_freq);
      table.attention_factor = LongAttentionFactor(rope);
      break;
  }
  return table;
}

}  // namespace skein
