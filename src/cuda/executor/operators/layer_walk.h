#pragma once

#include <cstdint>

#include "cuda/executor/device_batch.h"
#include "cuda/executor/operators/layer_op.h"
#include "cuda/executor/operators/layer_operators.h"

namespace skein::cuda {

// The order in which the operators of a layer run, chunk by chunk (hybrid prefilling; PrefillOnly,
// section 4). All operators of a group run for one chunk of rows before they run for the next:
//
//   attention     | kHeadInput ... kStoreHeads | kHeadRows ... kFork | kAttention ... kSumExperts |
//   that gathers  | the same                   | the same            | ... kGather | kGateNorm ...
//   | linear layer  | all operators |
//
// The second group runs once, over all tokens. The last one of a layer that gathers has chunks of
// gathered rows. So attention finds the keys and values of all tokens, and no other operator needs
// memory for more than a chunk. No bit depends on the chunks.
class LayerWalk {
 public:
  // Everything is borrowed. chunk_tokens: rows of a chunk, >= 1.
  LayerWalk(const LayerOperators& layers, const DeviceBatch& integers, int32_t chunk_tokens)
      : layers_(layers), integers_(integers), chunk_tokens_(chunk_tokens) {}

  // Goes to the first operator of the layer at hand (LayerOperators::set_layer), in a batch of so
  // many tokens.
  void Begin(int32_t num_tokens);
  // Goes to the next operator. Returns false if there is none.
  bool Next();

  int op() const { return op_; }
  const ChunkRows& rows() const { return rows_; }
  // Whether the operator is the first of its layer.
  bool at_begin() const { return at_begin_; }

 private:
  enum class Group : uint8_t { kAhead, kWhole, kAttention, kBehind };
  Group GroupOf(int op) const;
  // The rows of the group's first chunk from `index` on that has some to compute; none behind the
  // last.
  ChunkRows RowsFrom(Group group, int32_t index) const;
  // The first operator from `op` on that the layer has; kLayerOps if there is none.
  int From(int op) const;

  const LayerOperators& layers_;
  const DeviceBatch& integers_;
  const int32_t chunk_tokens_;
  int32_t num_tokens_ = 0;
  int op_ = 0;
  int first_op_ = 0;  // of the group
  ChunkRows rows_;
  bool at_begin_ = true;
};

}  // namespace skein::cuda
