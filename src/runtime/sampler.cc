#include "runtime/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/fp_mode.h"
#include "base/random.h"
#include "skein/token_grammar.h"

namespace skein {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

int64_t NumOutputs(const DrawSpec& spec) {
  return static_cast<int64_t>(spec.history.size()) - spec.prompt_len;
}

double RandomOf(const DrawSpec& spec) {
  return UniformAt(spec.generate->sampling.seed, spec.sample, NumOutputs(spec));
}

bool HasPenalties(const SamplingParams& p) {
  return p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
}

// The draw is greedy if the temperature is below the least normal number: a denormal one would
// count as zero in a division.
bool IsGreedy(const SamplingParams& p) { return p.temperature < std::numeric_limits<float>::min(); }

bool MustMaskStops(const DrawSpec& spec) {
  return NumOutputs(spec) < spec.generate->min_tokens && !spec.generate->stop_token_ids.empty();
}

bool ChangesLogits(const DrawSpec& spec) {
  const SamplingParams& p = spec.generate->sampling;
  return !p.logit_bias.empty() || !p.allowed_token_ids.empty() || !spec.generate->choices.empty() ||
         spec.grammar != nullptr || HasPenalties(p) || MustMaskStops(spec);
}

// The first candidate for which the sum of its value and all values before it exceeds `random`
// times the total. REQUIRES: random in [0, 1), a multiple of 2^-53. So the target stays below the
// total, which is the last sum.
TokenId DrawOf(const CandidateSet& set, double random) {
  SKEIN_CHECK(!set.candidates().empty());
  const double target = random * set.Total();
  auto c = set.candidates().begin();
  for (double sum = c->value; sum <= target; sum += c->value) ++c;
  return c->id;
}

// Copies the logits whose bit in `mask` is set; the other values become -inf. Returns the lowest
// token with a bit.
TokenId CopyMasked(std::span<const uint32_t> mask, std::span<const float> logits,
                   std::span<float> values) {
  const size_t vocab = logits.size();
  std::optional<size_t> lowest;
  for (size_t word = 0; word < mask.size(); ++word) {
    const size_t begin = word * 32;
    const size_t count = std::min<size_t>(32, vocab - begin);
    const uint32_t bits = mask[word];
    if (bits != 0 && !lowest) lowest = begin + std::countr_zero(bits);
    if (bits == 0) {
      std::fill_n(values.begin() + begin, count, kMinusInf);
    } else if (bits == ~uint32_t{0}) {
      std::copy_n(logits.begin() + begin, count, values.begin() + begin);
    } else {
      for (size_t i = 0; i < count; ++i) {
        values[begin + i] = (bits >> i & 1) != 0 ? logits[begin + i] : kMinusInf;
      }
    }
  }
  SKEIN_CHECK(lowest && *lowest < vocab);
  return static_cast<TokenId>(*lowest);
}

}  // namespace

Sampler::Sampler(const Kernels* kernels, int32_t vocab, int num_threads)
    : kernels_(kernels), vocab_(vocab) {
  SKEIN_CHECK(vocab >= 1 && num_threads >= 1);
  scratch_.reserve(num_threads);
  for (int i = 0; i < num_threads; ++i) scratch_.emplace_back(vocab);
}

void Sampler::Draw(const DrawSpec& spec, const float* logits, int thread, DrawResult* result) {
  const ScopedFpMode fp_mode;
  Scratch& scratch = scratch_[thread];
  const GenerateSpec& generate = *spec.generate;
  OutputToken& token = result->token;
  token.top_logprobs.clear();
  token.named_logprobs.clear();
  const Kernels::Largest largest = kernels_->FindLargest(logits, vocab_, scratch.group_max.data());
  result->finite = largest.finite;
  if (!largest.finite) {
    token.token = 0;
    return;
  }
  float log_sum_exp = 0;
  if (generate.num_logprobs) {
    log_sum_exp = kernels_->LogSumExp(logits, largest.max, vocab_);
    for (const TokenId id : generate.logprob_token_ids) {
      token.named_logprobs.push_back({id, logits[id] - log_sum_exp, 0});
    }
    FillTop(logits, log_sum_exp, *generate.num_logprobs, scratch, &token.top_logprobs);
  }
  token.token = Pick(spec, logits, largest, scratch);
  if (generate.num_logprobs) token.chosen = LogprobOf(token.token, logits, log_sum_exp);
}

bool Sampler::NeedsLargestAlone(const DrawSpec& spec) {
  return IsGreedy(spec.generate->sampling) && !spec.generate->num_logprobs && !ChangesLogits(spec);
}

std::optional<RandomDraw> Sampler::RandomDrawOf(const DrawSpec& spec) {
  const SamplingParams& params = spec.generate->sampling;
  if (IsGreedy(params) || spec.generate->num_logprobs || ChangesLogits(spec)) return std::nullopt;
  return RandomDraw{.temperature = params.temperature,
                    .top_k = std::max(0, params.top_k),
                    .top_p = params.top_p,
                    .min_p = params.min_p,
                    .random = RandomOf(spec)};
}

void Sampler::DrawLargest(const Kernels::Largest& largest, DrawResult* result) {
  result->token.top_logprobs.clear();
  result->token.named_logprobs.clear();
  result->finite = largest.finite;
  result->token.token = largest.finite ? largest.argmax : 0;
}

bool Sampler::Logprob(TokenId token, int32_t num_top, const float* logits, int thread,
                      PromptLogprob* result) {
  const ScopedFpMode fp_mode;
  Scratch& scratch = scratch_[thread];
  result->chosen = {.token = token};
  result->top_logprobs.clear();
  const Kernels::Largest largest = kernels_->FindLargest(logits, vocab_, scratch.group_max.data());
  if (!largest.finite) return false;
  const float log_sum_exp = kernels_->LogSumExp(logits, largest.max, vocab_);
  result->chosen = LogprobOf(token, logits, log_sum_exp);
  FillTop(logits, log_sum_exp, num_top, scratch, &result->top_logprobs);
  return true;
}

TokenId Sampler::Pick(const DrawSpec& spec, const float* logits, Kernels::Largest largest,
                      Scratch& scratch) const {
  if (ChangesLogits(spec)) {
    const std::optional<TokenId> lowest = ChangeLogits(spec, logits, scratch);
    logits = scratch.values.data();
    largest = kernels_->FindLargest(logits, vocab_, scratch.group_max.data());
    // All allowed tokens may have the probability zero.
    if (largest.max == kMinusInf && lowest) return *lowest;
  }
  if (IsGreedy(spec.generate->sampling) || std::isinf(largest.max)) return largest.argmax;
  return DrawWeighted(spec, logits, largest.max, scratch);
}

std::optional<TokenId> Sampler::ChangeLogits(const DrawSpec& spec, const float* logits,
                                             Scratch& scratch) const {
  const std::optional<TokenId> lowest = CopyAllowed(spec, logits, scratch);
  for (const auto& [id, bias] : spec.generate->sampling.logit_bias) scratch.values[id] += bias;
  if (HasPenalties(spec.generate->sampling)) ApplyPenalties(spec, scratch);
  if (MustMaskStops(spec)) MaskStops(spec, scratch);
  return lowest;
}

std::optional<TokenId> Sampler::CopyAllowed(const DrawSpec& spec, const float* logits,
                                            Scratch& scratch) const {
  PagedArray<float>& values = scratch.values;
  if (spec.grammar != nullptr) {
    if (spec.grammar->FindNext(spec.history.subspan(spec.prompt_len), scratch.mask)) {
      return CopyMasked(scratch.mask, std::span(logits, vocab_), values);
    }
  } else if (const std::span<const TokenId> allowed = AllowedIds(spec, scratch); !allowed.empty()) {
    std::ranges::fill(values, kMinusInf);
    for (const TokenId id : allowed) values[id] = logits[id];
    return *std::ranges::min_element(allowed);
  }
  std::copy_n(logits, vocab_, values.begin());
  return std::nullopt;
}

std::span<const TokenId> Sampler::AllowedIds(const DrawSpec& spec, Scratch& scratch) const {
  if (spec.generate->choices.empty()) return spec.generate->sampling.allowed_token_ids;
  const std::span<const TokenId> output = spec.history.subspan(spec.prompt_len);
  scratch.next_of_choices.clear();
  for (const std::vector<TokenId>& choice : spec.generate->choices) {
    if (GoesOn(choice, output)) scratch.next_of_choices.push_back(choice[output.size()]);
  }
  SKEIN_CHECK(!scratch.next_of_choices.empty());
  return scratch.next_of_choices;
}

void Sampler::ApplyPenalties(const DrawSpec& spec, Scratch& scratch) const {
  const SamplingParams& params = spec.generate->sampling;
  const auto outputs = spec.history.subspan(spec.prompt_len);
  for (const TokenId id : outputs) ++scratch.counts[id];
  // Visits every distinct token of the history once. After a visit, a prompt token's count is -1,
  // and another count is negated.
  for (const TokenId id : spec.history) {
    int32_t& count = scratch.counts[id];
    if (count < 0) continue;
    float& logit = scratch.values[id];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (count > 0) {
      logit -= params.presence_penalty + static_cast<float>(count) * params.frequency_penalty;
    }
    count = count > 0 ? -count : -1;
  }
  for (const TokenId id : spec.history) scratch.counts[id] = 0;
}

void Sampler::MaskStops(const DrawSpec& spec, Scratch& scratch) const {
  const std::vector<TokenId>& stops = spec.generate->stop_token_ids;
  const auto is_stop = [&](TokenId id) {
    return std::find(stops.begin(), stops.end(), id) != stops.end();
  };
  // If only stop tokens are allowed, they stay allowed: there is nothing else to draw.
  const std::vector<TokenId>& allowed = spec.generate->sampling.allowed_token_ids;
  if (!allowed.empty() && std::all_of(allowed.begin(), allowed.end(), is_stop)) return;
  for (const TokenId id : stops) {
    if (id >= 0 && id < vocab_) scratch.values[id] = kMinusInf;  // a config may name tokens outside
  }
}

TokenId Sampler::DrawWeighted(const DrawSpec& spec, const float* logits, float max,
                              Scratch& scratch) const {
  const SamplingParams& params = spec.generate->sampling;
  const double random = RandomOf(spec);
  CandidateSet& set = scratch.candidates;
  double total = 0;
  if (params.top_k > 0) {
    // A logit of -inf gets the weight 0 and is never drawn.
    TakeLargest(logits, params.top_k, std::numeric_limits<float>::lowest(), scratch);
    WeighCandidates(max, params.temperature, scratch);
    total = set.Total();
  } else {
    kernels_->Weigh(logits, max, params.temperature, vocab_, scratch.values.data(),
                    scratch.group_sums.data());
    if (params.top_p >= 1.0f && params.min_p <= 0.0f) return DrawOfAll(random, scratch);
    total = std::accumulate(scratch.group_sums.begin(), scratch.group_sums.end(), 0.0);
    TakeLikely(params, total, scratch);
  }
  if (params.top_p < 1.0f) set.KeepMass(double{params.top_p} * total);
  if (params.min_p > 0.0f) set.KeepAtLeast(params.min_p);
  return DrawOf(set, random);
}

TokenId Sampler::DrawOfAll(double random, const Scratch& scratch) const {
  const std::vector<double>& sums = scratch.group_sums;
  const double target = random * std::accumulate(sums.begin(), sums.end(), 0.0);
  // Finds the group as DrawOf finds a candidate: the target is below the last sum.
  double before = 0;
  int32_t group = 0;
  while (before + sums[group] <= target) before += sums[group++];
  const int32_t end = std::min(vocab_, (group + 1) * kRowGroup);
  // Finds the token in the group. If the group's sum was rounded differently, it is the group's
  // last token with a weight.
  TokenId token = 0;
  for (int32_t id = group * kRowGroup; id < end && before <= target; ++id) {
    if (scratch.values[id] == 0) continue;
    before += scratch.values[id];
    token = id;
  }
  return token;
}

void Sampler::Take(const float* x, float floor, const float* group_max, Scratch& scratch) const {
  const int32_t count = kernels_->FindAtLeast(x, vocab_, floor, group_max, scratch.ids.data());
  scratch.candidates.Clear();
  for (const int32_t id : std::span(scratch.ids.data(), count)) scratch.candidates.Add(id, x[id]);
}

void Sampler::TakeLargest(const float* logits, int32_t count, float least, Scratch& scratch) const {
  // At least `count` groups contain an element as large as the count-th largest of the groups'
  // maxima.
  std::vector<float>& maxima = scratch.ordered_max;
  float floor = kMinusInf;
  if (count <= std::ssize(maxima)) {
    std::copy(scratch.group_max.begin(), scratch.group_max.end(), maxima.begin());
    std::nth_element(maxima.begin(), maxima.begin() + count - 1, maxima.end(), std::greater<>());
    floor = maxima[count - 1];
  }
  Take(logits, std::max(floor, least), scratch.group_max.data(), scratch);
  scratch.candidates.KeepLargest(count);
}

void Sampler::TakeLikely(const SamplingParams& params, double total, Scratch& scratch) const {
  const float* weights = scratch.values.data();
  if (params.top_p >= 1.0f) return Take(weights, params.min_p, nullptr, scratch);
  // Weights below rest / (2 vocab) sum to less than half of what top_p may leave out. So the other
  // weights are enough, however sums are rounded. Usually a few large weights are enough, so a
  // higher floor is tried first.
  const double rest = (1.0 - double{params.top_p}) * total;
  const double enough = double{params.top_p} * total * (1 + 0x1p-30);
  const double last = 2.0 * vocab_;
  for (double parts = std::min(256.0, last);; parts = std::min(64 * parts, last)) {
    // The largest weight is 1 and is always kept.
    const float floor = std::min(1.0f, static_cast<float>(rest / parts));
    Take(weights, floor, nullptr, scratch);
    if (parts == last || scratch.candidates.Total() >= enough) return;
  }
}

void Sampler::WeighCandidates(float max, float temperature, Scratch& scratch) const {
  CandidateSet& set = scratch.candidates;
  float* values = scratch.values.data();
  int32_t count = 0;
  for (const CandidateSet::Candidate& c : set.candidates()) values[count++] = c.value;
  kernels_->Weigh(values, max, temperature, count, values, scratch.group_sums.data());
  set.SetValues(values);
}

TokenLogprob Sampler::LogprobOf(TokenId token, const float* logits, float log_sum_exp) const {
  return {token, logits[token] - log_sum_exp, 1 + kernels_->RankOf(logits, vocab_, token)};
}

void Sampler::FillTop(const float* logits, float log_sum_exp, int32_t count, Scratch& scratch,
                      std::vector<TokenLogprob>* top) const {
  if (count == 0) return;
  TakeLargest(logits, count, kMinusInf, scratch);
  for (const CandidateSet::Candidate& c : scratch.candidates.candidates()) {
    top->push_back({c.id, c.value - log_sum_exp, 0});
  }
  std::sort(top->begin(), top->end(), [&](const TokenLogprob& a, const TokenLogprob& b) {
    return logits[a.token] != logits[b.token] ? logits[a.token] > logits[b.token]
                                              : a.token < b.token;
  });
  int32_t next_rank = 0;
  for (TokenLogprob& entry : *top) entry.rank = ++next_rank;
}

}  // namespace skein
