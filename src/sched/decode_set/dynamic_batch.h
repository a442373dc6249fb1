#pragma once

#include <cstdint>

#include "sched/decode_set/decode_set_policy.h"

namespace skein {

// The decode set `dynamic`, a baseline: it limits the number of decoding requests by memory and by
// the time of a step. This is memory-aware and latency-bound dynamic batching as Pang et al.
// describe it (2025); the constants are ours.
//
// Memory: the largest batch that exceeds the pool with a probability of at most 5 %. The number of
// blocks of each request is assumed to be distributed as that of finished requests, and the sum to
// be normally distributed. Blocks from the prefix cache are not counted, since requests share them.
//
// Latency: the limit is the middle of an interval [low, high]. If decode steps take over 5 % longer
// than the target, the interval moves below the batch of those steps. If they take over 5 % less,
// the interval moves above that batch. Otherwise, it narrows around that batch. Each decision uses
// the mean of kWindow steps. Not thread-safe. Allocates nothing.
class DynamicBatch final : public DecodeSetPolicy {
 public:
  static constexpr int32_t kWindow = 8;

  // With `step_us` 0, memory alone decides. REQUIRES: num_blocks, max_num_seqs >= 1.
  DynamicBatch(int32_t num_blocks, int32_t max_num_seqs, TimeUs step_us);

  // In [1, max_num_seqs].
  int32_t MaxRunning() const override;
  // Steps with prompts also count: their decodes wait for the prompts.
  void ObserveStep(int64_t num_decodes, int64_t num_prefill_tokens, TimeUs duration_us) override;
  void ObserveEnd(const RequestRecord& request) override;

  // A request that held `num_blocks` blocks, besides those from the cache, has ended.
  void ObserveRequest(int64_t num_blocks);

 private:
  int32_t MemoryLimit() const;

  const int32_t num_blocks_;
  const int32_t max_num_seqs_;
  const TimeUs step_us_;
  // Welford's mean and sum of squared differences over finished requests.
  int64_t num_finished_ = 0;
  double mean_blocks_ = 0;
  double squares_ = 0;
  // Sums over the steps of this window.
  int32_t num_steps_ = 0;
  double sum_decodes_ = 0;
  double sum_us_ = 0;
  double low_ = 1;
  double high_ = 1;
};

}  // namespace skein
