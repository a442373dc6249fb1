#include "sched/decode_set/dynamic_batch.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace skein {
namespace {

constexpr double kOverflowDeviations = 1.645;  // 5 % of a normal distribution lie above
constexpr double kTolerance = 0.05;            // relative to the target time of a step
constexpr double kShare = 0.125;               // share of the batch by which the interval moves
constexpr double kLeastMove = 2;

}  // namespace

DynamicBatch::DynamicBatch(int32_t num_blocks, int32_t max_num_seqs, TimeUs step_us)
    : num_blocks_(num_blocks), max_num_seqs_(max_num_seqs), step_us_(step_us) {
  SKEIN_CHECK(num_blocks >= 1 && max_num_seqs >= 1 && step_us >= 0);
  high_ = max_num_seqs;
}

int32_t DynamicBatch::MaxRunning() const {
  int32_t limit = std::min(max_num_seqs_, MemoryLimit());
  if (step_us_ > 0) limit = std::min(limit, static_cast<int32_t>(std::lround((low_ + high_) / 2)));
  return std::max(limit, 1);
}

// The largest b with b mean + k sqrt(b) deviation <= num_blocks_.
int32_t DynamicBatch::MemoryLimit() const {
  if (num_finished_ < 2 || mean_blocks_ <= 0) return max_num_seqs_;
  const double variance = squares_ / static_cast<double>(num_finished_ - 1);
  const double spread = kOverflowDeviations * std::sqrt(variance);
  const double root =
      (std::sqrt(spread * spread + 4 * mean_blocks_ * num_blocks_) - spread) / (2 * mean_blocks_);
  return static_cast<int32_t>(std::min(root * root, static_cast<double>(max_num_seqs_)));
}

void DynamicBatch::ObserveRequest(int64_t num_blocks) {
  ++num_finished_;
  const auto blocks = static_cast<double>(num_blocks);
  const double before = blocks - mean_blocks_;
  mean_blocks_ += before / static_cast<double>(num_finished_);
  squares_ += before * (blocks - mean_blocks_);
}

void DynamicBatch::ObserveEnd(const RequestRecord& request) {
  if (request.execution_class == ExecutionClass::kOneShot || !request.scheduled) return;
  for (const auto& sequence : request.sequences) {
    const int32_t num_shared = sequence->sample == 0 ? request.cached_tokens : request.prompt_len;
    const int32_t num_blocks = BlocksFor(std::ssize(sequence->tokens)) - num_shared / kBlockTokens;
    ObserveRequest(std::max(1, num_blocks));
  }
}

void DynamicBatch::ObserveStep(int64_t num_decodes, int64_t /*num_prefill_tokens*/,
                               TimeUs duration_us) {
  if (step_us_ == 0 || num_decodes == 0) return;
  sum_decodes_ += static_cast<double>(num_decodes);
  sum_us_ += static_cast<double>(duration_us);
  if (++num_steps_ < kWindow) return;
  const double batch = sum_decodes_ / num_steps_;
  const double ratio = sum_us_ / num_steps_ / static_cast<double>(step_us_);
  num_steps_ = 0;
  sum_decodes_ = sum_us_ = 0;
  const double move = std::max(kLeastMove, kShare * batch);
  if (ratio > 1 + kTolerance) {
    high_ = std::max(batch, low_ + move);
    low_ -= move;
  } else if (ratio < 1 - kTolerance) {
    // Only a batch at the limit tells whether a larger batch would be fast enough.
    if (batch + 1 >= MaxRunning()) low_ = std::min(batch, high_);
    high_ += move;
  } else {
    high_ = batch + move / 2;
    low_ = batch - move / 2;
  }
  const auto most = static_cast<double>(max_num_seqs_);
  high_ = std::clamp(high_, 1.0, most);
  low_ = std::clamp(low_, 1.0, high_);
}

}  // namespace skein
