#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace skein {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// More likely first; of equals the lower id.
bool MoreLikely(const std::pair<float, TokenId>& a, const std::pair<float, TokenId>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

// Sorts the most likely candidates to the front until they hold `mass`, and cuts the rest off. At
// least one stays. Sorting in growing pieces spares the tail, which is most of a vocabulary.
void KeepTopP(double mass, std::vector<std::pair<float, TokenId>>* candidates) {
  double sum = 0;
  size_t sorted = 0;
  for (size_t i = 0; i < candidates->size(); ++i) {
    if (i == sorted) {
      sorted = std::min(candidates->size(), std::max<size_t>(256, 4 * sorted));
      const auto begin = candidates->begin();
      if (sorted < candidates->size())
        std::nth_element(begin + i, begin + sorted, candidates->end(), MoreLikely);
      std::sort(begin + i, begin + sorted, MoreLikely);
    }
    sum += (*candidates)[i].first;
    if (sum >= mass) {
      candidates->resize(i + 1);
      return;
    }
  }
}

// The candidate at which the running sum of weights passes `u` of their total; u in [0, 1).
TokenId PickAt(double u, const std::vector<std::pair<float, TokenId>>& candidates) {
  double total = 0;
  for (const auto& candidate : candidates) total += candidate.first;
  double sum = 0;
  for (const auto& candidate : candidates) {
    sum += candidate.first;
    if (sum > u * total) return candidate.second;
  }
  return candidates.back().second;  // u * total rounded up to the total
}

}  // namespace

Sampler::Sampler(const Kernels* kernels, int32_t vocab_size)
    : kernels_(kernels), vocab_size_(vocab_size) {}

bool Sampler::NeedsAdjustment(const DrawSpec& draw) const {
  const GenerateSpec& generate = *draw.generate;
  const SamplingParams& sampling = generate.sampling;
  const int64_t num_output = static_cast<int64_t>(draw.history.size()) - draw.prompt_len;
  return !sampling.logit_bias.empty() || !sampling.allowed_token_ids.empty() ||
         sampling.repetition_penalty != 1.0f || sampling.presence_penalty != 0.0f ||
         sampling.frequency_penalty != 0.0f || num_output < generate.min_tokens;
}

void Sampler::Adjust(const DrawSpec& draw, std::span<const float> logits,
                     SamplerScratch* scratch) const {
  const SamplingParams& sampling = draw.generate->sampling;
  std::vector<float>& x = scratch->logits;
  if (sampling.allowed_token_ids.empty()) {
    x.assign(logits.begin(), logits.end());
  } else {
    x.assign(logits.size(), kNever);
    for (TokenId id : sampling.allowed_token_ids) x[id] = logits[id];
  }
  for (const auto& [id, bias] : sampling.logit_bias) x[id] += bias;
  const auto output = draw.history.subspan(draw.prompt_len);
  if (static_cast<int64_t>(output.size()) < draw.generate->min_tokens)
    for (TokenId id : draw.generate->stop_token_ids) x[id] = kNever;

  if (sampling.repetition_penalty != 1.0f) {
    scratch->seen.assign(draw.history.begin(), draw.history.end());
    std::sort(scratch->seen.begin(), scratch->seen.end());
    scratch->seen.erase(std::unique(scratch->seen.begin(), scratch->seen.end()),
                        scratch->seen.end());
    for (TokenId id : scratch->seen)
      x[id] = x[id] > 0 ? x[id] / sampling.repetition_penalty : x[id] * sampling.repetition_penalty;
  }
  if (sampling.presence_penalty != 0.0f || sampling.frequency_penalty != 0.0f) {
    scratch->seen.assign(output.begin(), output.end());
    std::sort(scratch->seen.begin(), scratch->seen.end());
    for (size_t i = 0; i < scratch->seen.size();) {
      size_t end = i;
      while (end < scratch->seen.size() && scratch->seen[end] == scratch->seen[i]) ++end;
      x[scratch->seen[i]] -=
          sampling.presence_penalty + static_cast<float>(end - i) * sampling.frequency_penalty;
      i = end;
    }
  }
}

TokenId Sampler::DrawAtTemperature(const DrawSpec& draw, std::span<const float> logits, float max,
                                   SamplerScratch* scratch) const {
  const SamplingParams& sampling = draw.generate->sampling;
  scratch->weights.resize(vocab_size_);
  // Subtracting first keeps the largest weight at exactly 1, however small the temperature.
  for (int32_t i = 0; i < vocab_size_; ++i)
    scratch->weights[i] = (logits[i] - max) / sampling.temperature;
  kernels_->ExpShifted(scratch->weights.data(), 0.0f, vocab_size_, scratch->weights.data());

  auto& candidates = scratch->candidates;
  candidates.clear();
  for (TokenId id = 0; id < vocab_size_; ++id)
    if (scratch->weights[id] > 0) candidates.emplace_back(scratch->weights[id], id);
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + sampling.top_k, candidates.end(),
                     MoreLikely);
    candidates.resize(sampling.top_k);
    // The order that nth_element leaves is the library's affair; a draw must not depend on it.
    std::sort(candidates.begin(), candidates.end(), MoreLikely);
  }
  if (sampling.top_p < 1.0f) {
    double total = 0;
    for (const auto& candidate : candidates) total += candidate.first;
    KeepTopP(total * sampling.top_p, &candidates);
  }
  // The largest weight is 1, so min_p is a bound on the weight itself.
  std::erase_if(candidates, [&](const auto& c) { return c.first < sampling.min_p; });
  const auto position = static_cast<uint64_t>(draw.history.size()) - draw.prompt_len;
  return PickAt(UniformAt(sampling.seed, static_cast<uint64_t>(draw.sample), position), candidates);
}

void Sampler::FillLogprobs(std::span<const float> logits, float log_sum_exp, int32_t num_top,
                           SamplerScratch* scratch, OutputToken* token) const {
  const float chosen = logits[token->token];
  int32_t rank = 1;
  for (TokenId id = 0; id < vocab_size_; ++id) {
    rank += logits[id] > chosen || (logits[id] == chosen && id < token->token);
  }
  token->chosen = {token->token, chosen - log_sum_exp, rank};
  if (num_top <= 0) return;
  num_top = std::min(num_top, vocab_size_);
  auto& candidates = scratch->candidates;
  candidates.clear();
  for (TokenId id = 0; id < vocab_size_; ++id) candidates.emplace_back(logits[id], id);
  std::partial_sort(candidates.begin(), candidates.begin() + num_top, candidates.end(), MoreLikely);
  token->top_logprobs.reserve(num_top);
  for (int32_t i = 0; i < num_top; ++i)
    token->top_logprobs.push_back({candidates[i].second, candidates[i].first - log_sum_exp, i + 1});
}

void Sampler::Draw(const DrawSpec& draw, std::span<const float> logits, SamplerScratch* scratch,
                   DrawResult* result) const {
  SKEIN_CHECK(static_cast<int32_t>(logits.size()) == vocab_size_);
  *result = {};
  const Kernels::LogSum raw = kernels_->LogSumExp(logits.data(), vocab_size_);
  Kernels::LogSum adjusted = raw;
  std::span<const float> source = logits;
  if (raw.finite && NeedsAdjustment(draw)) {
    Adjust(draw, logits, scratch);
    source = scratch->logits;
    adjusted = kernels_->LogSumExp(source.data(), vocab_size_);
  }
  if (!raw.finite || !adjusted.finite) {
    result->finite = false;
    return;
  }
  result->token.token = draw.generate->sampling.temperature == 0
                            ? adjusted.argmax
                            : DrawAtTemperature(draw, source, adjusted.max, scratch);
  if (draw.generate->num_logprobs.has_value())
    FillLogprobs(logits, raw.log_sum_exp, *draw.generate->num_logprobs, scratch, &result->token);
}

}  // namespace skein
