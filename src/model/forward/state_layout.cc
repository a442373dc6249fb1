#include "model/forward/state_layout.h"

namespace skein {

StateLayout::StateLayout(const ModelConfig& config, int32_t slots)
    : num_slots(config.has_linear_layers() ? slots : 0), num_layers(config.num_linear_layers()) {
  const LinearLayers& linear = config.decoder.linear;
  conv_floats = int64_t{kConvWidth - 1} * linear.conv_width();
  delta_floats = int64_t{linear.num_v_heads} * linear.k_dim * linear.v_dim;
}

}  // namespace skein
