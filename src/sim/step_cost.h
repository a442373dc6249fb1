#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "sched/plan.h"
#include "sim/device.h"
#include "sim/kv_reads.h"

namespace skein {

// How many devices a model is spread over.
struct Parallelism {
  int32_t tensor = 1;    // each operator over so many devices; two all-reduces per layer
  int32_t pipeline = 1;  // the layers over so many stages
};

// How the decode rows of a step read the keys and values that they share. In all of them a kernel
// multiplies the queries of a row that share a KV head together (grouped-query attention), at the
// efficiency of a product of so many rows; so where nothing is shared all take the same time.
enum class KvReading {
  kEachRow,  // each for itself, from memory: a plain kernel and no cache
  // Each for itself, but what was read before in the layer comes from the device's cache, as much
  // of it as fits (a share of cache / different bytes); hits cost nothing but their arithmetic,
  // which is that of kEachRow. A bound on what a cache can give a plain kernel of that arithmetic:
  // a real one also loses lines to other data and to the order of reading.
  kCached,
  // Once for all rows, at every depth of sharing: a kernel that multiplies the queries of all rows
  // with what they share as one matrix, at the efficiency of all their rows together. Partial
  // results are merged for nothing.
  kOnce,
};

// How long a step takes on a device. Each product is the longer of its arithmetic at the efficiency
// of its rows and its memory traffic; attention likewise, row by row; each operator has its launch.
// All layers count as equal, though the pass of this engine leaves out of the last what nobody
// reads: where it does, the time is too long by less than a layer's share.
//
// Of a mixture of experts the weights are read of those experts that any token goes to, as many as
// there would be if tokens chose at random, and their products have the efficiency of the rows that
// each gets; they are launched together.
//
// Hybrid execution takes a layer's operators but attention through so many tokens at a time: each
// chunk has the efficiency of its own rows, reads the weights again and has its launches and
// all-reduces; attention and the output matrix are as in plain execution.
//
// Tensor parallelism divides both and adds, per layer, two all-reduces of the activations: the
// bytes of a ring, the latency of one message. Pipeline parallelism cuts a step into the number of
// equal micro-batches that takes least (at most one for each row and stage, or one for each
// kMicroBatchTokens tokens): m of them take m + stages - 1 turns of a stage, each of which reads
// its weights anew. Stages are taken as equally long and hand-overs as hidden but for those of the
// first micro-batch, which favours pipelines; steps do not overlap, which does not.
class StepCost {
 public:
  static constexpr int32_t kMicroBatchTokens = 2048;

  // Fails with kInvalidArgument where the device has no peak for the model's weight type, no link
  // for more than one device, or the model's heads or layers cannot be divided so. `chunk_tokens`:
  // those of hybrid execution; 0: it is plain. REQUIRES: chunk_tokens >= 0.
  static Result<StepCost> Make(const DeviceDescription& device, const ModelShape& shape,
                               const Parallelism& parallelism,
                               KvReading reading = KvReading::kEachRow, int32_t chunk_tokens = 0);

  // `reads`: those of the plan's decode rows.
  double StepUs(const StepPlan& plan, const KvReads& reads) const;
  double StepUs(const StepPlan& plan) const { return StepUs(plan, CountKvReads(DecodesOf(plan))); }
  int32_t num_layers() const { return shape_.num_layers; }

  // Bytes of KV that fit beside the weights on all devices together, `utilization` of whose memory
  // may be used; negative where the weights alone do not fit. `reserved_bytes`: for activations.
  int64_t KvBytes(double utilization, int64_t reserved_bytes) const;

 private:
  StepCost(const DeviceDescription& device, const ModelShape& shape, const Parallelism& parallelism,
           KvReading reading, int32_t chunk_tokens);

  double ProductUs(double rows, double in, double out, double bytes_per_weight) const;
  double AttentionUs(const PlanRow& row, double product_rows) const;
  double DecodeAttentionUs(std::span<const PlanRow> decodes, const KvReads& reads) const;
  double PairsUs(double pairs, double rows) const;
  double KvBytesOf(double num_tokens) const;
  // Of one layer; where some layers are mixtures of experts, of the mean of them.
  double MlpUs(double num_tokens) const;
  double ExpertsUs(double num_tokens) const;
  double AllReduceUs(double num_tokens) const;
  // Of one layer, all but attention, over so many tokens at once; and over those of a step, chunk
  // by chunk where execution is hybrid.
  double OperatorsUs(double num_tokens) const;
  double ChunkedOperatorsUs(double num_tokens) const;
  // All layers and the output matrix over so many tokens, whose attention takes so long in a layer.
  double ForwardUs(double num_tokens, double num_outputs, double attention_us) const;

  DeviceDescription device_;
  ModelShape shape_;
  Parallelism parallelism_;
  KvReading reading_;
  int32_t chunk_tokens_ = 0;
  double peak_flops_per_us_ = 0;
  double bytes_per_us_ = 0;
};

}  // namespace skein
