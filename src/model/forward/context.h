#pragma once

#include <cstddef>
#include <vector>

#include "base/thread_team.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "model/forward/rope_angles.h"
#include "model/forward/state_layout.h"
#include "model/pooling.h"
#include "model/weights/lora_weights.h"
#include "model/weights/weights.h"

namespace skein {

// The data that forward passes of one model share. Everything is borrowed and outlives the passes.
struct ForwardContext {
  const ModelWeights* weights = nullptr;
  const Kernels* kernels = nullptr;
  const RopeAngles* rope = nullptr;  // null for BERT's family
  KvLayout kv_layout;                // its dtype is the weights' compute type
  std::byte* kv = nullptr;           // [kv_layout.total_bytes()]
  ThreadTeam* team = nullptr;
  Pooling pooling = Pooling::kLast;  // of embeddings
  // Rows with common leading blocks share a call that reads those blocks once (AttentionCall).
  // Otherwise each row has its own call. The bits are the same.
  bool share_attention = true;
  // Row i of a batch has adapter ForwardRow::adapter, which counts from 1. Null: there are none.
  const std::vector<LoraWeights>* adapters = nullptr;
  const RopeAngles* local_rope = nullptr;  // of local layers; null: there are none
  StateLayout state_layout;                // of linear layers
  float* states = nullptr;                 // [state_layout.total_bytes()]
};

}  // namespace skein
