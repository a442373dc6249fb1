#pragma once

#include <cstddef>
#include <cstdint>

#include "model/config/config.h"

namespace skein {

// The states of linear layers in memory, in f32: [num_slots][num_layers][layer_floats()]. A slot
// holds the state of one sequence after some of its tokens. The state of a layer has two parts:
//
//   q, k, v of the convolution: [2 * num_k_heads + num_v_heads] heads of [kConvWidth - 1, head]
//   delta rule: [num_v_heads][v_dim / kDeltaCols][k_dim, kDeltaCols]
struct StateLayout {
  StateLayout() = default;
  StateLayout(const ModelConfig& config, int32_t slots);

  int32_t num_slots = 0;
  int32_t num_layers = 0;    // number of linear layers
  int64_t conv_floats = 0;   // of one layer
  int64_t delta_floats = 0;  // of one layer

  int64_t layer_floats() const { return conv_floats + delta_floats; }
  int64_t slot_floats() const { return num_layers * layer_floats(); }
  size_t total_bytes() const {
    return static_cast<size_t>(num_slots * slot_floats()) * sizeof(float);
  }
  // The offset of a layer's state. `linear_layer` counts linear layers only.
  int64_t Offset(int32_t slot, int32_t linear_layer) const {
    return slot * slot_floats() + linear_layer * layer_floats();
  }
};

}  // namespace skein
