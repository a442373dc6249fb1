#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "sched/plan.h"
#include "sim/device.h"
#include "sim/kv_reads.h"

namespace skein {

// How a model is divided between devices.
struct Parallelism {
  int32_t tensor =
      1;  // each operator is divided between `tensor` devices; two all-reduces per layer
  int32_t pipeline = 1;  // the layers are divided between `pipeline` stages
};

// The way in which the decode rows of a step read shared keys and values. In each way, the queries
// of a row that share a KV head are multiplied together (grouped-query attention), with the
// efficiency of as many rows. Without sharing, all ways take the same time.
enum class KvReading {
  kEachRow,  // each row separately, from memory: a plain kernel, no cache
  // Each row separately. The device's cache supplies keys and values that were read before in the
  // layer, as far as they fit (the share cache / distinct bytes). A hit costs only its arithmetic,
  // which is that of kEachRow. This is an upper bound on what a plain kernel gains from a cache: a
  // real cache also loses lines to other data and by the order of reading.
  kCached,
  // Shared keys and values are read once for all rows that share them, also if subsets of the rows
  // share more. The kernel multiplies the queries of all these rows by the shared keys as one
  // matrix, with the efficiency of that many rows. Merging partial results takes no time.
  kOnce,
};

// The time of a step on a device. A product takes the longer of two times: that of its arithmetic,
// at the efficiency of its rows, and that of its memory traffic. The same holds for attention, row
// by row. Each operator has a launch. All layers take the same time. The engine skips unread
// outputs in the last layer; the predicted time is then too long, by less than a layer's share.
//
// In a mixture of experts, a step reads the weights of each expert that some token uses. The number
// of these experts is the expected number if tokens choose at random. The products of an expert
// have the efficiency of its rows; all experts are launched together.
//
// In hybrid execution, the operators of a layer, except attention, run for `chunk_tokens` tokens at
// a time. Each chunk has the efficiency of its own rows, reads the weights again and has its own
// launches and all-reduces. Attention and the output matrix are as in plain execution.
//
// Tensor parallelism divides arithmetic and traffic between devices. It adds two all-reduces of the
// activations per layer; each takes the time of a ring's bytes and the latency of one message.
//
// A block that goes to the host or comes back is one copy of all layers, ahead of the step. It
// takes a launch and its bytes at the speed of the link. Devices copy their parts at the same time.
//
// Pipeline parallelism cuts a step into equal micro-batches; their number is the one that takes
// least time. There is at most one for each row and stage, or one for each kMicroBatchTokens
// tokens. m micro-batches take m + stages - 1 turns of a stage. In each turn, a stage reads its
// weights again. All stages take the same time, and only the hand-overs of the first micro-batch
// take time; both favour pipelines. Steps do not overlap, which disfavours pipelines.
class StepCost {
 public:
  static constexpr int32_t kMicroBatchTokens = 2048;

  // Fails with kInvalidArgument if the device has no peak for the model's weight type, or no link
  // although there is more than one device, or if heads or layers cannot be divided. `chunk_tokens`
  // > 0 chooses hybrid execution, 0 plain execution. REQUIRES: chunk_tokens >= 0.
  static Result<StepCost> Make(const DeviceDescription& device, const SimModelShape& shape,
                               const Parallelism& parallelism,
                               KvReading reading = KvReading::kEachRow, int32_t chunk_tokens = 0);

  // `reads` are the reads of the plan's decode rows.
  double StepUs(const StepPlan& plan, const KvReads& reads) const;
  double StepUs(const StepPlan& plan) const { return StepUs(plan, CountKvReads(DecodesOf(plan))); }
  int32_t num_layers() const { return shape_.num_layers; }

  // The bytes of KV that fit beside the weights, on all devices together. Negative if the weights
  // alone do not fit. `utilization` is the usable share of memory; `reserved_bytes` are kept free
  // for activations.
  int64_t KvBytes(double utilization, int64_t reserved_bytes) const;

 private:
  StepCost(const DeviceDescription& device, const SimModelShape& shape,
           const Parallelism& parallelism, KvReading reading, int32_t chunk_tokens);

  double ProductUs(double rows, double in, double out, double bytes_per_weight) const;
  double AttentionUs(const PlanRow& row, double product_rows) const;
  double DecodeAttentionUs(std::span<const PlanRow> decodes, const KvReads& reads) const;
  double PairsUs(double pairs, double rows) const;
  double KvBytesOf(double num_tokens) const;
  // The time of the MLP in one layer. If only some layers are mixtures of experts, it is the mean
  // over all layers.
  double MlpUs(double num_tokens) const;
  double ExpertsUs(double num_tokens) const;
  double SharedExpertUs(double num_tokens) const;  // of all tokens
  double AllReduceUs(double num_tokens) const;
  double HostCopiesUs(std::span<const HostCopy> copies) const;
  // The time of one layer without attention. OperatorsUs computes `num_tokens` together;
  // ChunkedOperatorsUs goes chunk by chunk in hybrid execution.
  double OperatorsUs(double num_tokens) const;
  double ChunkedOperatorsUs(double num_tokens) const;
  // The time of all layers for `num_tokens`, and of the output matrix for `num_outputs`. Attention
  // takes `attention_us` in each layer.
  double ForwardUs(double num_tokens, double num_outputs, double attention_us) const;

  DeviceDescription device_;
  SimModelShape shape_;
  Parallelism parallelism_;
  KvReading reading_;
  int32_t chunk_tokens_ = 0;
  double peak_flops_per_us_ = 0;
  double bytes_per_us_ = 0;
};

}  // namespace skein
