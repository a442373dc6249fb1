#pragma once

#include <cstdint>

namespace skein::cuda {

// The operators of a layer, in the order they run. A layer has some of them. A pass can stop before
// any.
enum LayerOp {
  kHeadInput,
  kAttnNorm,
  // Those of a linear layer.
  kLinearIn,
  kDeltaGates,
  kConv,
  kScaleHeads,
  kDelta,
  kGatedNorm,
  // Those of a layer with attention.
  kQkv,
  kQkvNorm,
  kStoreHeads,
  kHeadRows,
  kTerms,
  kFork,
  kAttention,
  kGather,
  kGateNorm,
  kGateProduct,
  kGate,
  // Those of both.
  kO,
  kAttnBranch,
  kMlpNorm,
  kGateUp,
  kUp,
  kActivate,
  kDown,
  kMlpBranch,
  kRoute,
  kChooseExperts,
  kListSlots,
  kExpertGateUp,
  kExpertDown,
  kSumExperts,
};
inline constexpr int kLayerOps = kSumExperts + 1;

// The rows that an operator computes at a time: a chunk of the tokens, or of the gathered rows
// (LayerWalk).
struct ChunkRows {
  int32_t index = 0;  // of the chunk
  int32_t first = 0, count = 0;
};

}  // namespace skein::cuda
