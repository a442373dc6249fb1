#pragma once

#include <cstddef>
#include <vector>

#include "base/threads/thread_team.h"
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
  KvLayout kv_layout;                // its dtype is the weights' compute type or kInt8
  std::byte* kv = nullptr;           // [kv_layout.total_bytes()]
  ThreadTeam* team = nullptr;
  Pooling pooling = Pooling::kLast;  // for embeddings
  // Rows with common leading blocks share a call that reads those blocks once (AttentionCall).
  // Otherwise each row has its own call. The bits are the same.
  bool share_attention = true;
  // ForwardRow::adapter is an index into this list, counted from 1. Null: there are no adapters.
  const std::vector<LoraWeights>* adapters = nullptr;
  const RopeAngles* local_rope = nullptr;  // for local layers; null: there are none
  StateLayout state_layout;                // for linear layers
  float* states = nullptr;                 // [state_layout.total_bytes()]
};

}  // namespace skein
