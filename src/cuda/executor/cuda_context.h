#pragma once

#include <cstdint>

#include "cuda/device/device.h"
#include "cuda/executor/device_rope.h"
#include "cuda/executor/device_weights.h"
#include "cuda/executor/rank.h"
#include "model/config/config.h"
#include "model/forward/context.h"

namespace skein::cuda {

// The data that passes on a device share. Everything is borrowed and outlives the passes.
struct CudaContext {
  Device* device = nullptr;
  Rank rank;
  const DeviceWeights* weights = nullptr;  // the rank's share
  // The model on the host: its config, the rank's KV layout, the range of its rope. Its kv is null.
  ForwardContext model;
  uint8_t* kv = nullptr;             // [model.kv_layout.total_bytes()], of the device
  float* states = nullptr;           // [CudaExecutor::StateBytes], of the device; of linear layers
  const DeviceRope* rope = nullptr;  // null: no layer rotates
  const DeviceRope* local_rope = nullptr;  // of layers with a window; null: there are none
  bool graphs = true;                      // steps of single tokens run as PassGraphs
};

}  // namespace skein::cuda
