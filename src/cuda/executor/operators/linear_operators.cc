#include "cuda/executor/operators/linear_operators.h"

#include <cmath>

#include "base/check.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {

void LinearOperators::Run(int op, int32_t layer, const ChunkRows& rows) {
  layer_ = layer;
  rows_ = rows;
  const DeviceLinear& weights = context_.weights->layers[layer].linear;
  switch (op) {
    case kDeltaGates:
      return Gates(weights);
    case kConv:
      return Conv(weights);
    case kScaleHeads:
      return ScaleHeads();
    case kDelta:
      return Delta();
    case kGatedNorm:
      return GatedNorm(weights);
    default:
      SKEIN_CHECK(false);
  }
}

float* LinearOperators::states() const {
  const int32_t linear_layer = layer_ - context_.model.weights->config.KvLayer(layer_);
  return context_.states + layout().Offset(0, linear_layer);
}

void LinearOperators::Gates(const DeviceLinear& weights) {
  const LinearLayers& s = shape();
  launcher_.Run(DeltaGatesLaunch({.x = memory().sums.as<float>() + s.conv_width() + s.v_width(),
                                  .ldx = s.width(),
                                  .rates = weights.rates,
                                  .dt_bias = weights.dt_bias,
                                  .num_tokens = rows_.count,
                                  .num_heads = s.num_v_heads,
                                  .gates = memory().gates.as<void>()}));
}

// A row may start from the end of a row in an earlier wave, whose state must be there.
void LinearOperators::Conv(const DeviceLinear& weights) {
  const LinearLayers& s = shape();
  ConvArgs args = {.x = memory().sums.as<float>(),
                   .ldx = s.width(),
                   .rows = integers_->state_rows(),
                   .weight = weights.conv,
                   .width = s.conv_width(),
                   .k_width = s.k_width(),
                   .k_dim = s.k_dim,
                   .v_dim = s.v_dim,
                   .states = states(),
                   .slot_floats = layout().slot_floats(),
                   .out = memory().qkv.as<float>()};
  for (const StateWave& wave : integers_->state_waves(rows_.index)) {
    ConvArgs of_wave = args;
    of_wave.tiles = integers_->conv_tiles() + wave.first_tile;
    of_wave.num_tiles = wave.num_tiles;
    launcher_.Run(ConvLaunch(of_wave));
    of_wave.rows += wave.first_row;
    of_wave.num_rows = wave.num_rows;
    launcher_.Run(StoreConvStatesLaunch(of_wave));
  }
}

// x / sqrt(sum + eps) = x / sqrt(mean + eps / n) / sqrt(n).
void LinearOperators::ScaleHeads() {
  const LinearLayers& s = shape();
  launcher_.Run(
      ScaleLinearHeadsLaunch({.x = memory().qkv.as<float>(),
                              .ldx = s.conv_width(),
                              .num_tokens = rows_.count,
                              .num_k_heads = s.num_k_heads,
                              .k_dim = s.k_dim,
                              .eps = kDeltaLengthEps / static_cast<float>(s.k_dim),
                              .q_gain = 1.0f / static_cast<float>(s.k_dim),
                              .k_gain = static_cast<float>(1.0 / std::sqrt(double(s.k_dim)))}));
}

void LinearOperators::Delta() {
  const LinearLayers& s = shape();
  DeltaArgs args = {.x = memory().qkv.as<float>(),
                    .ldx = s.conv_width(),
                    .gates = memory().gates.as<void>(),
                    .num_k_heads = s.num_k_heads,
                    .num_v_heads = s.num_v_heads,
                    .k_dim = s.k_dim,
                    .v_dim = s.v_dim,
                    .tiled_v_heads = s.tiled_v_heads,
                    .states = states() + layout().conv_floats,
                    .slot_floats = layout().slot_floats()};
  for (const StateWave& wave : integers_->state_waves(rows_.index)) {
    args.rows = integers_->state_rows() + wave.first_row;
    args.num_rows = wave.num_rows;
    launcher_.Run(DeltaLaunch(args));
  }
}

void LinearOperators::GatedNorm(const DeviceLinear& weights) {
  const LinearLayers& s = shape();
  const Activations::Operand& out = memory().out;
  launcher_.Run(GatedNormLaunch(context_.model.weights->dtype,
                                {.v = memory().qkv.as<float>() + 2 * s.k_width(),
                                 .ldv = s.conv_width(),
                                 .z = memory().sums.as<float>() + s.conv_width(),
                                 .ldz = s.width(),
                                 .weight = weights.norm,
                                 .eps = context_.model.weights->config.decoder.rms_norm_eps,
                                 .num_tokens = rows_.count,
                                 .num_heads = s.num_v_heads,
                                 .v_dim = s.v_dim,
                                 .out = out.buffer.as<void>(),
                                 .ldo = out.width}));
}

}  // namespace skein::cuda
