#pragma once

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

}  // namespace skein::cuda
