#pragma once

#include <cstdint>

#include "sched/decode_set/decode_set_policy.h"

namespace skein {

// How many requests may decode at once, by memory and by how long a step takes: the decode set
// `dynamic`, a baseline (memory-aware and latency-bound dynamic batching, as Pang et al. describe
// it, 2025; the constants are ours).
//
// Memory: the most requests whose blocks together, each taken for a draw from those that have
// finished, exceed the pool with a probability of 5 % (a normal distribution). Blocks that come
// from the prefix cache are not counted: they are there once.
//
// Latency: the limit is the middle of an interval [low, high]. While decode steps take more than 5
// % longer than aimed at, the interval moves below the batch of those steps, while they take less,
// above; in between it closes in on that batch. Judged by the mean of kWindow steps.
// Not thread-safe. Allocates nothing.
class DynamicBatch final : public DecodeSetPolicy {
 public:
  static constexpr int32_t kWindow = 8;

  // `step_us` 0: memory alone decides. REQUIRES: num_blocks, max_num_seqs >= 1.
  DynamicBatch(int32_t num_blocks, int32_t max_num_seqs, TimeUs step_us);

  // In [1, max_num_seqs].
  int32_t MaxRunning() const override;
  // Steps with prompts in them count too: their decodes wait for those.
  void ObserveStep(int64_t num_decodes, int64_t num_prefill_tokens, TimeUs duration_us) override;
  void ObserveEnd(const RequestRecord& request) override;

  // A request has ended that held so many blocks beside those it took from the cache.
  void ObserveRequest(int64_t num_blocks);

 private:
  int32_t MemoryLimit() const;

  const int32_t num_blocks_;
  const int32_t max_num_seqs_;
  const TimeUs step_us_;
  // Of finished requests: Welford's mean and sum of squared differences.
  int64_t num_finished_ = 0;
  double mean_blocks_ = 0;
  double squares_ = 0;
  // Of the steps of this window.
  int32_t num_steps_ = 0;
  double sum_decodes_ = 0;
  double sum_us_ = 0;
  double low_ = 1;
  double high_ = 1;
};

}  // namespace skein
