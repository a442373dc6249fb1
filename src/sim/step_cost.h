#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "sched/plan.h"
#include "sim/device.h"
#include "sim/kv_reads.h"

namespace skein {

// The number of devices that hold a model.
struct Parallelism {
  int32_t tensor =
      1;  // each operator is divided between `tensor` devices; two all-reduces per layer
  int32_t pipeline = 1;  // the layers are divided between `pipeline` stages
};

// The way in which the decode rows of a step read shared keys and values. Each way multiplies the
// queries of a row that share a KV head together (grouped-query attention). The product has the
// efficiency of that many rows. Without sharing all ways take the same time.
enum class KvReading {
  kEachRow,  // each row on its own, from memory: a plain kernel and no cache
  // Each row on its own. The device's cache supplies keys and values that were read before in the
  // layer, as far as they fit (the share cache / distinct bytes). A hit costs only its arithmetic,
  // which is that of kEachRow. This is an upper bound on the gain of a plain kernel from a cache: a
  // real one also loses lines to other data and to the order of reading.
  kCached,
  // Once for all rows, at every depth of sharing. The kernel multiplies the queries of all rows
  // with the shared keys as one matrix, at the efficiency of all their rows together. Merging
  // partial results is free.
  kOnce,
};

// The time of a step on a device. A product takes the longer of two times: its arithmetic at the
// efficiency of its rows, and its memory traffic. Attention does the same, row by row. Each
// operator has a launch. All layers count as equal. The engine skips unread outputs in the last
// layer; the time is then too long by less than a layer's share.
//
// In a mixture of experts, a step reads the weights of each expert that some token uses; their
// number is the expected one for tokens that choose at random. The products of an expert have the
// efficiency of its rows; all experts are launched together.
//
// Hybrid execution takes the operators of a layer, except attention, through `chunk_tokens` tokens
// at a time. Each chunk has the efficiency of its own rows, reads the weights again and has its own
// launches and all-reduces. Attention and the output matrix are as in plain execution.
//
// Tensor parallelism divides arithmetic and traffic. It adds, per layer, two all-reduces of the
// activations: the bytes of a ring and the latency of one message.
//
// Pipeline parallelism cuts a step into equal micro-batches, in the number that takes least time.
// There is at most one for each row and stage, or one for each kMicroBatchTokens tokens. m
// micro-batches take m + stages - 1 turns of a stage, and each reads its weights anew. Stages take
// equal time, and only the hand-overs of the first micro-batch take time, which favours pipelines.
// Steps do not overlap, which disfavours them.
class StepCost {
 public:
  static constexpr int32_t kMicroBatchTokens = 2048;

  // kInvalidArgument if the device has no peak for the model's weight type, no link for more than
  // one device, or if heads or layers cannot be divided. `chunk_tokens` > 0 chooses hybrid
  // execution, 0 plain execution. REQUIRES: chunk_tokens >= 0.
  static Result<StepCost> Make(const DeviceDescription& device, const SimModelShape& shape,
                               const Parallelism& parallelism,
                               KvReading reading = KvReading::kEachRow, int32_t chunk_tokens = 0);

  // `reads` are those of the plan's decode rows.
  double StepUs(const StepPlan& plan, const KvReads& reads) const;
  double StepUs(const StepPlan& plan) const { return StepUs(plan, CountKvReads(DecodesOf(plan))); }
  int32_t num_layers() const { return shape_.num_layers; }

  // The bytes of KV that fit beside the weights on all devices together; negative if the weights
  // alone do not fit. `utilization` is the usable share of memory, `reserved_bytes` is for
  // activations.
  int64_t KvBytes(double utilization, int64_t reserved_bytes) const;

 private:
  StepCost(const DeviceDescription& device, const SimModelShape& shape,
           const Parallelism& parallelism, KvReading reading, int32_t chunk_tokens);

  double ProductUs(double rows, double in, double out, double bytes_per_weight) const;
  double AttentionUs(const PlanRow& row, double product_rows) const;
  double DecodeAttentionUs(std::span<const PlanRow> decodes, const KvReads& reads) const;
  double PairsUs(double pairs, double rows) const;
  double KvBytesOf(double num_tokens) const;
  // The time of one layer; if only some layers are mixtures of experts, the mean of all.
  double MlpUs(double num_tokens) const;
  double ExpertsUs(double num_tokens) const;
  double AllReduceUs(double num_tokens) const;
  // The time of one layer without attention: over `num_tokens` at once, and over those of a step,
  // chunk by chunk in hybrid execution.
  double OperatorsUs(double num_tokens) const;
  double ChunkedOperatorsUs(double num_tokens) const;
  // The time of all layers and the output matrix over `num_tokens`; attention takes `attention_us`
  // in a layer.
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
