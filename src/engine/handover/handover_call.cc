#include "engine/handover/handover_call.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace skein {

HandoverCall::HandoverCall(Request request, OutputCallback callback)
    : request_(std::move(request)),
      callback_(std::move(callback)),
      samples_(NumSamples(request_)) {}

void HandoverCall::BeginStage(CallStage next) {
  stage = next;
  for (Sample& sample : samples_) sample.num_seen = 0;
}

void HandoverCall::NoteCancelled(int32_t sample) {
  for (int32_t i = 0; i < std::ssize(samples_); ++i) {
    if (sample < 0 || sample == i) samples_[i].cancelled = true;
  }
}

bool HandoverCall::AllEnded() const { return std::ranges::all_of(samples_, &Sample::ended); }

bool HandoverCall::AnyLives() const {
  return std::ranges::any_of(
      samples_, [](const Sample& sample) { return !sample.ended && !sample.cancelled; });
}

bool HandoverCall::IsPrefilled() {
  const std::lock_guard lock(mutex);
  return stage == CallStage::kPrefill && std::ranges::all_of(samples_, &Sample::prefilled);
}

std::optional<RequestOutput> HandoverCall::Take(RequestOutput output, TimeUs now_us,
                                                bool* differs) {
  const std::lock_guard lock(mutex);
  *differs = output.sample < 0 || output.sample >= std::ssize(samples_);
  if (*differs) return std::nullopt;
  Sample& sample = samples_[output.sample];
  if (sample.ended) return std::nullopt;
  if (stage == CallStage::kPrefill && output.finish) {
    sample.prefilled = true;
    times_ = output.times;
    cached_tokens_ = output.cached_tokens;
    if (output.finish == FinishReason::kLength) output.finish.reset();
  }
  std::ptrdiff_t num_known = 0;
  for (const OutputToken& token : output.tokens) {
    if (sample.num_seen < sample.delivered.size()) {
      *differs = sample.delivered[sample.num_seen] != token.token;
      if (*differs) return std::nullopt;
      ++num_known;
    } else {
      sample.delivered.push_back(token.token);
    }
    ++sample.num_seen;
  }
  *differs = output.finish && output.finish != FinishReason::kCancelled &&
             output.finish != FinishReason::kError && sample.num_seen < sample.delivered.size();
  if (*differs) return std::nullopt;
  output.tokens.erase(output.tokens.begin(), output.tokens.begin() + num_known);
  if (output.tokens.empty() && !output.finish) return std::nullopt;
  sample.ended = output.finish.has_value();
  output.request = id;
  if (stage != CallStage::kPrefill) {
    output.times = times_;
    output.cached_tokens = cached_tokens_;
    if (output.finish) output.times.finished_us = now_us;
  }
  return output;
}

}  // namespace skein
