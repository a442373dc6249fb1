#include "bench/gpu/gpu_linear_cases.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "bench/gpu/gpu_operands.h"
#include "cuda/kernels/launches.h"
#include "kernels/linear_shape.h"

namespace skein {
namespace {

using cuda::Device;

// Heads as in Qwen3.5, but few.
constexpr int32_t kKHeads = 2, kVHeads = 4, kVDim = 128;

// Rows that begin a sequence, or start from a slot and keep their state there. The second one has
// several tiles of the convolution, and snapshots of states.
constexpr int32_t kLinearTokens = 112, kSlots = 6;
std::vector<cuda::StateRow> LinearRows() {
  std::vector<cuda::StateRow> rows = {{0, 40, -1, 0}, {40, 70, 1, 1}, {110, 1, 2, 3}, {111, 1, 2}};
  rows[1].snapshots[0] = {4, 2};
  rows[1].snapshots[1] = {5, 64};
  return rows;
}

std::vector<cuda::ConvTile> TilesOf(const std::vector<cuda::StateRow>& rows) {
  std::vector<cuda::ConvTile> tiles;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int32_t first = 0; first < rows[row].num_tokens; first += cuda::kConvTileTokens) {
      const int32_t count = std::min(cuda::kConvTileTokens, rows[row].num_tokens - first);
      tiles.push_back({static_cast<int32_t>(row), first, count});
    }
  }
  return tiles;
}

// Decays and betas in turn. The exponential of double precision is the library's, so the last bit
// may differ.
Result<std::vector<float>> RunDeltaGates(Device& device, uint64_t seed) {
  constexpr int32_t kHeads = 5, kGates = kLinearTokens * kHeads;
  GpuOperands operands(device, seed);
  std::vector<double> rates;
  for (const float log : operands.Random(kHeads)) rates.push_back(std::exp(double{log}));
  auto* gates = static_cast<float*>(operands.Make(kGates * cuda::kDeltaGatesBytes));
  return operands.Run(cuda::DeltaGatesLaunch({.x = operands.Put(operands.Random(2 * kGates)),
                                              .ldx = 2 * kHeads,
                                              .rates = operands.Put(rates),
                                              .dt_bias = operands.Put(operands.Random(kHeads)),
                                              .num_tokens = kLinearTokens,
                                              .num_heads = kHeads,
                                              .gates = gates}),
                      gates, kGates * cuda::kDeltaGatesBytes / sizeof(float));
}

// kStores: the states that are kept, else the results.
template <bool kStores>
Result<std::vector<float>> RunConv(Device& device, uint64_t seed) {
  constexpr int32_t kKDim = 128, kKWidth = kKHeads * kKDim;
  constexpr int32_t kWidth = 2 * kKWidth + kVHeads * kVDim, kState = (kConvWidth - 1) * kWidth;
  GpuOperands operands(device, seed);
  const std::vector<cuda::StateRow> rows = LinearRows();
  const std::vector<cuda::ConvTile> tiles = TilesOf(rows);
  auto* out = static_cast<float*>(operands.Make(kLinearTokens * kWidth * sizeof(float)));
  float* const states = operands.Put(operands.Random(kSlots * kState));
  const cuda::ConvArgs args = {.x = operands.Put(operands.Random(kLinearTokens * kWidth)),
                               .ldx = kWidth,
                               .rows = operands.Put(rows),
                               .tiles = operands.Put(tiles),
                               .num_rows = static_cast<int32_t>(rows.size()),
                               .num_tiles = static_cast<int32_t>(tiles.size()),
                               .weight = operands.Put(operands.Random(kConvWidth * kWidth)),
                               .width = kWidth,
                               .k_width = kKWidth,
                               .k_dim = kKDim,
                               .v_dim = kVDim,
                               .states = states,
                               .slot_floats = kState,
                               .out = out};
  if (kStores) return operands.Run(cuda::StoreConvStatesLaunch(args), states, kSlots * kState);
  return operands.Run(cuda::ConvLaunch(args), out, kLinearTokens * kWidth);
}

Result<std::vector<float>> RunScaleLinearHeads(Device& device, uint64_t seed) {
  constexpr int32_t kKDim = 128, kWidth = 2 * kKHeads * kKDim;
  GpuOperands operands(device, seed);
  float* const x = operands.Put(operands.Random(kLinearTokens * kWidth));
  return operands.Run(cuda::ScaleLinearHeadsLaunch({.x = x,
                                                    .ldx = kWidth,
                                                    .num_tokens = kLinearTokens,
                                                    .num_k_heads = kKHeads,
                                                    .k_dim = kKDim,
                                                    .eps = 1e-8f,
                                                    .q_gain = 1.0f / kKDim,
                                                    .k_gain = 0.09f}),
                      x, kLinearTokens * kWidth);
}

// Queries and keys have about unit length, and gates are in (0, 1): states stay small. kReturns:
// what is returned.
enum class DeltaResult : uint8_t { kValues, kStates };
template <int32_t kKDim, DeltaResult kReturns>
Result<std::vector<float>> RunDelta(Device& device, uint64_t seed) {
  constexpr int32_t kQkWidth = 2 * kKHeads * kKDim, kVWidth = kVHeads * kVDim;
  constexpr int32_t kWidth = kQkWidth + kVWidth, kState = kKDim * kVWidth;
  GpuOperands operands(device, seed);
  std::vector<float> of_x = operands.Random(kLinearTokens * kWidth);
  for (int32_t i = 0; i < kLinearTokens * kWidth; ++i) {
    if (i % kWidth < kQkWidth) of_x[i] /= std::sqrt(static_cast<float>(kKDim));
  }
  std::vector<float> gates = operands.Random(kLinearTokens * kVHeads * 4);
  for (float& gate : gates) gate = 1 / (1 + gate * gate);
  const std::vector<cuda::StateRow> rows = LinearRows();
  float* const x = operands.Put(of_x);
  float* const states = operands.Put(operands.Random(kSlots * kState));
  const cuda::Launch launch = cuda::DeltaLaunch({.x = x,
                                                 .ldx = kWidth,
                                                 .gates = operands.Put(gates),
                                                 .rows = operands.Put(rows),
                                                 .num_rows = static_cast<int32_t>(rows.size()),
                                                 .num_k_heads = kKHeads,
                                                 .num_v_heads = kVHeads,
                                                 .k_dim = kKDim,
                                                 .v_dim = kVDim,
                                                 .states = states,
                                                 .slot_floats = kState});
  if (kReturns == DeltaResult::kStates) return operands.Run(launch, states, kSlots * kState);
  return operands.Run(launch, x, kLinearTokens * kWidth);
}

template <typename T>
constexpr DType kTypeOf = std::is_same_v<T, Bf16> ? DType::kBf16 : DType::kF32;

template <typename T>
Result<std::vector<float>> RunGatedNorm(Device& device, uint64_t seed) {
  constexpr int32_t kWidth = kVHeads * kVDim;
  GpuOperands operands(device, seed);
  T* const out = static_cast<T*>(operands.Make(kLinearTokens * kWidth * sizeof(T)));
  return operands.Run(
      cuda::GatedNormLaunch(kTypeOf<T>, {.v = operands.Put(operands.Random(kLinearTokens * kWidth)),
                                         .ldv = kWidth,
                                         .z = operands.Put(operands.Random(kLinearTokens * kWidth)),
                                         .ldz = kWidth,
                                         .weight = operands.Put(operands.Random(kVDim)),
                                         .eps = 1e-6f,
                                         .num_tokens = kLinearTokens,
                                         .num_heads = kVHeads,
                                         .v_dim = kVDim,
                                         .out = out,
                                         .ldo = kWidth}),
      out, kLinearTokens * kWidth);
}

template <typename T>
Result<std::vector<float>> RunAttentionGate(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 1000;
  GpuOperands operands(device, seed);
  const std::vector<float> values = operands.Random(kRows * kWidth);
  T* x = nullptr;
  if constexpr (std::is_same_v<T, Bf16>) x = operands.Put(GpuOperands::Rounded(values));
  if constexpr (std::is_same_v<T, float>) x = operands.Put(values);
  return operands.Run(
      cuda::AttentionGateLaunch(kTypeOf<T>, {.gate = operands.Put(operands.Random(kRows * kWidth)),
                                             .num_rows = kRows,
                                             .width = kWidth,
                                             .x = x,
                                             .ldx = kWidth}),
      x, kRows * kWidth);
}

template <typename T, cuda::Gate kGate>
Result<std::vector<float>> RunGateSums(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 1000;
  GpuOperands operands(device, seed);
  T* const out = static_cast<T*>(operands.Make(kRows * kWidth * sizeof(T)));
  return operands.Run(
      cuda::GateSumsLaunch(kTypeOf<T>, {.gate = kGate,
                                        .x = operands.Put(operands.Random(2 * kRows * kWidth)),
                                        .ldx = 2 * kWidth,
                                        .up = kWidth,
                                        .num_rows = kRows,
                                        .width = kWidth,
                                        .out = out,
                                        .ldo = kWidth}),
      out, kRows * kWidth);
}

}  // namespace

std::vector<GpuCase> GpuLinearCases() {
  using enum DeltaResult;
  return {
      {"delta_gates", false, RunDeltaGates},
      {"conv", true, RunConv<false>},
      {"store_conv_states", true, RunConv<true>},
      {"scale_linear_heads", true, RunScaleLinearHeads},
      {"delta, 128", true, RunDelta<128, kValues>},
      {"delta, 128, states", true, RunDelta<128, kStates>},
      {"delta, 64", true, RunDelta<64, kValues>},
      {"delta, 64, states", true, RunDelta<64, kStates>},
      {"gated_norm f32", true, RunGatedNorm<float>},
      {"gated_norm bf16", true, RunGatedNorm<Bf16>},
      {"attention_gate f32", true, RunAttentionGate<float>},
      {"attention_gate bf16", true, RunAttentionGate<Bf16>},
      {"gate_sums f32, silu", true, RunGateSums<float, cuda::Gate::kSilu>},
      {"gate_sums bf16, gelu", true, RunGateSums<Bf16, cuda::Gate::kGelu>},
  };
}

}  // namespace skein
