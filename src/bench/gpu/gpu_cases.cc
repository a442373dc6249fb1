#include "bench/gpu/gpu_cases.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "bench/gpu/gpu_attention_cases.h"
#include "bench/gpu/gpu_linear_cases.h"
#include "bench/gpu/gpu_operands.h"
#include "cuda/kernels/launches.h"
#include "cuda/kernels/panel_places.h"
#include "kernels/packed_weight.h"

namespace skein {
namespace {

using cuda::Device;
using cuda::TileSize;

Result<std::vector<float>> RunNorm(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 1000;
  GpuOperands operands(device, seed);
  auto* out = static_cast<float*>(operands.Make(kRows * kWidth * sizeof(float)));
  return operands.Run(
      cuda::RmsNormLaunch(DType::kF32, {.x = operands.Put(operands.Random(kRows * kWidth)),
                                        .ldx = kWidth,
                                        .weight = operands.Put(operands.Random(kWidth)),
                                        .num_rows = kRows,
                                        .width = kWidth,
                                        .eps = 1e-6f,
                                        .out = out,
                                        .ldo = kWidth}),
      out, kRows * kWidth);
}

// kInPlace: the results in f32 that take the place of x, else those that are rounded.
template <bool kInPlace>
Result<std::vector<float>> RunLayerNorm(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 1000;
  GpuOperands operands(device, seed);
  float* const x = operands.Put(operands.Random(kRows * kWidth));
  auto* out = static_cast<Bf16*>(operands.Make(kRows * kWidth * sizeof(Bf16)));
  const cuda::Launch launch =
      cuda::LayerNormLaunch(DType::kBf16, {.x = x,
                                           .ldx = kWidth,
                                           .weight = operands.Put(operands.Random(kWidth)),
                                           .bias = operands.Put(operands.Random(kWidth)),
                                           .num_rows = kRows,
                                           .width = kWidth,
                                           .eps = 1e-6f,
                                           .normed = kInPlace ? x : nullptr,
                                           .out = out,
                                           .ldo = kWidth});
  if (kInPlace) return operands.Run(launch, x, kRows * kWidth);
  return operands.Run(launch, out, kRows * kWidth);
}

Result<std::vector<float>> RunAddTableRows(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 1000, kOfTable = 3;
  GpuOperands operands(device, seed);
  float* const x = operands.Put(operands.Random(kRows * kWidth));
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < kRows; ++i) rows.push_back(operands.Integer(0, kOfTable - 1));
  return operands.Run(
      cuda::AddTableRowsLaunch({.table = operands.Put(operands.Random(kOfTable * kWidth)),
                                .rows = operands.Put(rows),
                                .num_rows = kRows,
                                .width = kWidth,
                                .x = x}),
      x, kRows * kWidth);
}

// Means of more rows than a thread loads at once, and of fewer.
Result<std::vector<float>> RunMean(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 60, kWidth = 1000;
  const std::vector<cuda::RowsOfMean> means = {{0, 1}, {1, 35}, {36, 8}, {44, 16}};
  GpuOperands operands(device, seed);
  auto* out = static_cast<float*>(operands.Make(means.size() * kWidth * sizeof(float)));
  return operands.Run(cuda::MeanLaunch({.x = operands.Put(operands.Random(kRows * kWidth)),
                                        .rows = operands.Put(means),
                                        .num_means = static_cast<int32_t>(means.size()),
                                        .width = kWidth,
                                        .out = out}),
                      out, means.size() * kWidth);
}

Result<std::vector<float>> RunQuantize(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 192;
  GpuOperands operands(device, seed);
  auto* out = static_cast<int8_t*>(operands.Make(kRows * kWidth));
  return operands.Run(
      cuda::QuantizeLaunch(DType::kF32,
                           {.x = operands.Put(operands.Random(kRows * kWidth)),
                            .ldx = kWidth,
                            .num_rows = kRows,
                            .width = kWidth,
                            .out = out,
                            .ldo = kWidth,
                            .scales = static_cast<float*>(operands.Make(kRows * sizeof(float)))}),
      out, kRows * kWidth);
}

// A gated product, so that SiLU and its exponential are tested, too. kPersistent: tiles that blocks
// compute one after the other, where the device has them.
template <typename T, int32_t kRows, TileSize... kPersistent>
Result<std::vector<float>> RunGemm(Device& device, uint64_t seed) {
  constexpr bool kInt8 = std::is_same_v<T, int8_t>, kIsBf16 = std::is_same_v<T, Bf16>;
  constexpr DType kType = kInt8 ? DType::kInt8 : kIsBf16 ? DType::kBf16 : DType::kF32;
  constexpr int32_t kColumns = 72, kPadded = 80, kTerms = 256;
  std::optional<TileSize> tile;
  if (device.has_phases()) ((tile = kPersistent), ...);
  GpuOperands operands(device, seed);
  const std::vector<float> w = operands.Random(2 * kPadded * kTerms);
  PackedWeight packed(2 * kPadded, kTerms, kType);
  packed.PackRows(0, 2 * kPadded, w.data(), DType::kF32);
  const std::vector<float> a = operands.Random(kRows * kTerms);
  std::vector<T> rows;
  for (const float x : a) {
    if constexpr (kInt8) rows.push_back(static_cast<int8_t>(x * 30));
    if constexpr (kIsBf16) rows.push_back(ToBf16(x));
    if constexpr (std::is_same_v<T, float>) rows.push_back(x);
  }
  std::vector<float> w_scales;
  if (kInt8) w_scales.assign(packed.scales(), packed.scales() + 2 * kPadded);
  using Out = std::conditional_t<kIsBf16, Bf16, float>;
  auto* out = static_cast<Out*>(operands.Make(kRows * kColumns * sizeof(Out)));
  return operands.Run(
      cuda::GemmLaunch(kType, cuda::GemmOutput::kGated, kIsBf16 ? DType::kBf16 : DType::kF32,
                       {.a = operands.Put(rows),
                        .lda = kTerms * static_cast<int64_t>(sizeof(T)) / 4,
                        .a_scales = operands.Put(std::vector<float>(kRows, 0.01f)),
                        .w = operands.Put(packed),
                        .w_scales = kInt8 ? operands.Put(w_scales) : nullptr,
                        .m = kRows,
                        .columns = kColumns,
                        .words = kTerms * static_cast<int32_t>(sizeof(T)) / 4,
                        .up_panel = kPadded / kPanelCols,
                        .out = out,
                        .ldo = kColumns},
                       {.shared_bytes = device.shared_bytes(),
                        .persistent_blocks = device.has_phases() ? 2 : 0,
                        .tile = tile}),
      out, kRows * kColumns);
}

// Norms, rotates and stores the heads of tokens. Returns the resulting KV blocks. kTurns: the
// angles are those of other positions, as where options are read side by side.
template <int32_t kTokens, int32_t kDim, bool kTurns = false>
Result<std::vector<float>> RunStoreHeads(Device& device, uint64_t seed) {
  constexpr int32_t kHeads = 4, kHalf = kDim / 2, kFirst = 3;
  constexpr int32_t kBlocks = (kFirst + kTokens + kKvBlockTokens - 1) / kKvBlockTokens;
  const KvLayout layout = {DType::kBf16, 1, kBlocks, 1, kDim};
  GpuOperands operands(device, seed);
  std::vector<int32_t> positions, angles, blocks;
  for (int32_t i = 0; i < kTokens; ++i) {
    positions.push_back(i + kFirst);
    angles.push_back(kTurns ? operands.Integer(0, kFirst + kTokens - 1) : positions.back());
    blocks.push_back(positions.back() / kKvBlockTokens);
  }
  const size_t elements = layout.total_bytes() / sizeof(Bf16);
  auto* memory = static_cast<Bf16*>(operands.Make(layout.total_bytes()));
  return operands.Run(
      cuda::StoreHeadsLaunch(DType::kBf16,
                             {.qkv = operands.Put(operands.Random(kTokens * (kHeads + 2) * kDim)),
                              .q_norm = operands.Put(operands.Random(kDim)),
                              .k_norm = operands.Put(operands.Random(kDim)),
                              .eps = 1e-6f,
                              .cos = operands.Put(operands.Random((kFirst + kTokens) * kHalf)),
                              .sin = operands.Put(operands.Random((kFirst + kTokens) * kHalf)),
                              .positions = operands.Put(positions),
                              .rope_positions = operands.Put(angles),
                              .blocks = operands.Put(blocks),
                              .num_tokens = kTokens,
                              .num_heads = kHeads,
                              .num_kv_heads = 1,
                              .head_dim = kDim,
                              .rotary_dim = kDim,
                              .q = operands.Make(kTokens * kHeads * kDim * sizeof(Bf16)),
                              .ldq = kHeads * kDim,
                              .kv = {.pool = reinterpret_cast<uint8_t*>(memory),
                                     .num_pool_blocks = kBlocks,
                                     .block_bytes = static_cast<int64_t>(layout.block_bytes()),
                                     .head_bytes = static_cast<int64_t>(layout.head_bytes())}}),
      memory, elements);
}

// Slots of each of kExperts experts, which the device lists; each token goes through all of them.
template <int32_t kTokens, int32_t kExperts>
cuda::GemmGroups ListGroups(Device& device, GpuOperands& operands, int32_t panels) {
  std::vector<int32_t> experts;
  for (int32_t i = 0; i < kTokens * kExperts; ++i) experts.push_back(i % kExperts);
  auto* counts = static_cast<int32_t*>(operands.Make(kExperts * sizeof(int32_t)));
  auto* slots = static_cast<int32_t*>(operands.Make(kExperts * kTokens * sizeof(int32_t)));
  device.Run(cuda::ListSlotsLaunch({.experts = operands.Put(experts),
                                    .num_slots = kTokens * kExperts,
                                    .num_experts = kExperts,
                                    .counts = counts,
                                    .slots = slots,
                                    .capacity = kTokens}));
  return {.counts = counts,
          .slots = slots,
          .capacity = kTokens,
          .slots_per_row = kExperts,
          .num_groups = kExperts,
          .panels = panels};
}

// Blocks of two formats, with minimums and without. kExperts > 1: a part of the panels for each.
template <int32_t kRows, int32_t kExperts = 1>
Result<std::vector<float>> RunBlocksGemm(Device& device, uint64_t seed) {
  constexpr int32_t kTerms = 512, kPanels = 4, kColumns = 60 / kExperts;
  GpuOperands operands(device, seed);
  std::vector<BlockFormat> formats = {BlockFormat::kQ4_0, BlockFormat::kQ4_1, BlockFormat::kQ4_0,
                                      BlockFormat::kQ4_1};
  PackedWeight packed(kPanels * kPanelCols, kTerms, formats);
  for (int32_t i = 0; i < kPanels; ++i) {
    // Rows as in a file: f16 scales of moderate size, then random values.
    const BlockTraits& traits = TraitsOf(formats[i]);
    std::vector<std::byte> rows(kPanelCols * kTerms / kBlockTerms * traits.file_bytes);
    for (std::byte& byte : rows) byte = static_cast<std::byte>(operands.Integer(0, 255));
    for (size_t at = 0; at < rows.size(); at += traits.file_bytes) {
      for (size_t half = 1; half <= (traits.has_minimum() ? 3 : 1); half += 2) {
        rows[at + half] = static_cast<std::byte>(operands.Integer(0x20, 0x34));
      }
    }
    packed.PackBlocks(i * kPanelCols, kPanelCols, rows.data(), formats[i]);
  }
  const std::vector<std::byte> bytes(packed.panel(0),
                                     packed.panel(0) + cuda::BytesOfPanels(packed));
  auto* q = static_cast<int8_t*>(operands.Make(kRows * kTerms));
  auto* scales =
      static_cast<float*>(operands.Make(kRows * kTerms / kBlockTerms * 2 * sizeof(float)));
  auto* out = static_cast<float*>(operands.Make(kRows * kExperts * kColumns * sizeof(float)));
  device.Run(
      cuda::QuantizeBlocksLaunch(DType::kF32, {.x = operands.Put(operands.Random(kRows * kTerms)),
                                               .ldx = kTerms,
                                               .num_rows = kRows,
                                               .width = kTerms,
                                               .out = q,
                                               .ldo = kTerms,
                                               .scales = scales}));
  cuda::GemmArgs args = {.a = q,
                         .lda = kTerms / 4,
                         .a_scales = scales,
                         .w = operands.Put(bytes),
                         .places = operands.Put(cuda::PlacesOf(packed)),
                         .m = kRows,
                         .columns = kColumns,
                         .words = kTerms / 4,
                         .out = out,
                         .ldo = kColumns};
  constexpr DType kType = DType::kBlocks;
  constexpr cuda::GemmOutput kStore = cuda::GemmOutput::kStore;
  if constexpr (kExperts == 1) {
    return operands.Run(cuda::GemmLaunch(kType, kStore, DType::kF32, args), out, kRows * kColumns);
  }
  args.groups = ListGroups<kRows, kExperts>(device, operands, kPanels / kExperts);
  constexpr int32_t kSlots = kRows * kExperts;
  return operands.Run(cuda::GroupedGemmLaunch(kType, kStore, DType::kF32, kSlots, args), out,
                      kSlots * kColumns);
}

// The weights of the chosen experts; a wrong choice has others.
Result<std::vector<float>> RunChooseExperts(Device& device, uint64_t seed) {
  constexpr int32_t kTokens = 20, kExperts = 60, kPerToken = 8;
  GpuOperands operands(device, seed);
  auto* weights = static_cast<float*>(operands.Make(kTokens * kPerToken * sizeof(float)));
  return operands.Run(
      cuda::ChooseExpertsLaunch(
          {.logits = operands.Put(operands.Random(kTokens * kExperts)),
           .ldl = kExperts,
           .num_tokens = kTokens,
           .num_experts = kExperts,
           .per_token = kPerToken,
           .norm_weights = true,
           .experts = static_cast<int32_t*>(operands.Make(kTokens * kPerToken * sizeof(int32_t))),
           .weights = weights}),
      weights, kTokens * kPerToken);
}

// Two experts, listed by the device; a row of each token for both.
Result<std::vector<float>> RunGroupedGemm(Device& device, uint64_t seed) {
  constexpr int32_t kTokens = 40, kExperts = 2, kColumns = 48, kTerms = 64;
  constexpr int32_t kSlots = kTokens * kExperts;
  GpuOperands operands(device, seed);
  auto* out = static_cast<float*>(operands.Make(kSlots * kColumns * sizeof(float)));
  cuda::GemmArgs args = {.a = operands.Put(operands.Random(kTokens * kTerms)),
                         .lda = kTerms,
                         .w = operands.Put(operands.Random(kExperts * kColumns * kTerms)),
                         .m = kTokens,
                         .columns = kColumns,
                         .words = kTerms,
                         .out = out,
                         .ldo = kColumns};
  args.groups = ListGroups<kTokens, kExperts>(device, operands, kColumns / kPanelCols);
  return operands.Run(
      cuda::GroupedGemmLaunch(DType::kF32, cuda::GemmOutput::kStore, DType::kF32, kSlots, args),
      out, kSlots * kColumns);
}

// The rows of the second matrix.
Result<std::vector<float>> RunGather(Device& device, uint64_t seed) {
  constexpr int32_t kFrom = 20, kRows = 3, kWidth = 1000;
  GpuOperands operands(device, seed);
  auto* out = static_cast<float*>(operands.Make(kRows * kWidth * sizeof(float)));
  return operands.Run(
      cuda::GatherLaunch({.rows = operands.Put(std::vector<int32_t>{2, 3, 19}),
                          .num_rows = kRows,
                          .first = {operands.Put(operands.Random(kFrom * kWidth)),
                                    operands.Make(kRows * kWidth * sizeof(float)), kWidth},
                          .second = {operands.Put(operands.Random(kFrom * kWidth)), out, kWidth}}),
      out, kRows * kWidth);
}

Result<std::vector<float>> RunShareColumns(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 3, kWidth = 2500, kFirst = 16, kShared = 2048;
  GpuOperands operands(device, seed);
  auto* to = operands.Put(operands.Random(kRows * kWidth));
  cuda::ShareColumnsArgs args = {
      .num_peers = 1, .num_rows = kRows, .stride = kWidth, .words = kShared};
  args.from = reinterpret_cast<uint32_t*>(operands.Put(operands.Random(kRows * kWidth)) + kFirst);
  args.to[0] = reinterpret_cast<uint32_t*>(to + kFirst);
  return operands.Run(cuda::ShareColumnsLaunch(args), to, kRows * kWidth);
}

Result<std::vector<float>> RunBranch(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 1000;
  GpuOperands operands(device, seed);
  auto* x = operands.Put(operands.Random(kRows * kWidth));
  return operands.Run(cuda::BranchLaunch({.branch = operands.Put(operands.Random(kRows * kWidth)),
                                          .weight = operands.Put(operands.Random(kWidth)),
                                          .eps = 1e-6f,
                                          .scale = 0.22f,
                                          .num_rows = kRows,
                                          .width = kWidth,
                                          .x = x}),
                      x, kRows * kWidth);
}

Result<std::vector<float>> RunFinishLogits(Device& device, uint64_t seed) {
  constexpr int32_t kLogits = 3000;
  GpuOperands operands(device, seed);
  float* const x = operands.Put(operands.Random(kLogits));
  return operands.Run(
      cuda::FinishLogitsLaunch({.x = x, .num_logits = kLogits, .divisor = 3, .cap = 0.5f}), x,
      kLogits);
}

// The indices of the largest, between the marks of finite rows.
Result<std::vector<float>> RunFindLargest(Device& device, uint64_t seed) {
  constexpr int32_t kRows = 20, kWidth = 3000;
  GpuOperands operands(device, seed);
  auto* out = static_cast<int32_t*>(operands.Make(kRows * sizeof(cuda::RowLargest)));
  return operands.Run(cuda::FindLargestLaunch({.x = operands.Put(operands.Random(kRows * kWidth)),
                                               .ldx = kWidth,
                                               .num_rows = kRows,
                                               .width = kWidth,
                                               .out = reinterpret_cast<cuda::RowLargest*>(out)}),
                      out, kRows * sizeof(cuda::RowLargest) / sizeof(int32_t));
}

// The tokens of random draws with all combinations of cut-offs, and whether the host is to draw.
Result<std::vector<float>> RunDraws(Device& device, uint64_t seed) {
  constexpr int32_t kVocab = 9000;
  GpuOperands operands(device, seed);
  std::vector<cuda::RowDraw> draws;
  for (const int32_t top_k : {0, 1, 20, 3000}) {
    for (const float top_p : {1.0f, 0.5f, 0.99f}) {
      for (const float min_p : {0.0f, 0.1f}) {
        cuda::RowDraw& draw = draws.emplace_back();
        draw = {operands.Integer(1, 12) / 8.0f, top_k, top_p, min_p};
        draw.random_low = static_cast<uint32_t>(operands.Integer(0, 1 << 30));
        draw.random_high = static_cast<uint32_t>(operands.Integer(0, (1 << 21) - 1));
      }
    }
  }
  const auto num_rows = static_cast<int32_t>(draws.size());
  std::vector<float> logits = operands.Random(int64_t{num_rows} * kVocab);
  for (float& x : logits) x *= 3.0f;
  const int64_t groups = int64_t{num_rows} * cuda::NumDrawGroups(kVocab);
  auto* rows = static_cast<int32_t*>(operands.Make(num_rows * sizeof(cuda::RowLargest)));
  const cuda::DrawArgs args = {
      .logits = operands.Put(logits),
      .ldx = kVocab,
      .draws = operands.Put(draws),
      .num_rows = num_rows,
      .vocab = kVocab,
      .rows = reinterpret_cast<cuda::RowLargest*>(rows),
      .best = static_cast<float*>(operands.Make(groups * sizeof(float))),
      .sums = static_cast<double*>(operands.Make(groups * sizeof(double)))};
  SKEIN_RETURN_IF_ERROR(operands.status());
  device.Run(cuda::FindLargestLaunch(
      {.x = args.logits, .ldx = kVocab, .num_rows = num_rows, .width = kVocab, .out = args.rows}));
  device.Run(cuda::WeighGroupsLaunch(args));
  return operands.Run(cuda::DrawLaunch(args), rows,
                      num_rows * sizeof(cuda::RowLargest) / sizeof(int32_t));
}

}  // namespace

std::vector<GpuCase> GpuCases() {
  std::vector<GpuCase> cases = {
      {"rms_norm f32", true, RunNorm},
      {"layer_norm bf16", true, RunLayerNorm<false>},
      {"layer_norm in place", true, RunLayerNorm<true>},
      {"add_table_rows", true, RunAddTableRows},
      {"mean", true, RunMean},
      {"quantize int8", true, RunQuantize},
      {"store_heads bf16", true, RunStoreHeads<20, 64>},
      {"many heads bf16, 64", true, RunStoreHeads<90, 64>},
      {"many heads bf16, 128", true, RunStoreHeads<100, 128>},
      {"store_heads, angles", true, RunStoreHeads<20, 64, true>},
      {"many heads, angles", true, RunStoreHeads<90, 64, true>},
      {"gemm f32, 5 rows", true, RunGemm<float, 5>},
      {"gemm f32, 70 rows", true, RunGemm<float, 70>},
      {"gemm int8, 5 rows", true, RunGemm<int8_t, 5>},
      {"gemm int8, 70 rows", true, RunGemm<int8_t, 70>},
      {"gemm bf16, 5 rows", false, RunGemm<Bf16, 5>},
      {"gemm bf16, 70 rows", false, RunGemm<Bf16, 70>},
      {"gemm bf16, 200 rows, large", false, RunGemm<Bf16, 200, TileSize::kPersistentLarge>},
      {"gemm bf16, 300 rows, huge", false, RunGemm<Bf16, 300, TileSize::kPersistentHuge>},
      {"gemm blocks, 5 rows", true, RunBlocksGemm<5>},
      {"gemm blocks, 70 rows", true, RunBlocksGemm<70>},
      {"choose_experts", true, RunChooseExperts},
      {"grouped gemm f32", true, RunGroupedGemm},
      {"grouped gemm blocks, 5 rows", true, RunBlocksGemm<5, 2>},
      {"grouped gemm blocks, 70 rows", true, RunBlocksGemm<70, 2>},
      {"gather", true, RunGather},
      {"share columns", true, RunShareColumns},
      {"branch", true, RunBranch},
      {"finish_logits", true, RunFinishLogits},
      {"find_largest", true, RunFindLargest},
      {"draws", true, RunDraws},
  };
  for (const std::vector<GpuCase>& of : {GpuAttentionCases(), GpuLinearCases()}) {
    cases.insert(cases.end(), of.begin(), of.end());
  }
  return cases;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (a.size() != b.size()) return kNaN;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return kNaN;
    if (std::isnan(a[i]) || a[i] == b[i]) continue;
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
  }
  for (const float x : b) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(double{x}));
  }
  return difference == 0 ? 0 : difference / largest;
}

Result<double> TimeGemm(Device& device, const GemmShape& shape, int32_t repetitions) {
  constexpr int64_t kBytesMax = int64_t{1} << 30;
  const int64_t k = cuda::PaddedWidth(shape.k, DType::kBf16);
  const int64_t panels = (shape.n + kPanelCols - 1) / kPanelCols;
  const int64_t matrix_bytes = panels * kPanelCols * k * static_cast<int64_t>(sizeof(Bf16));
  const int64_t room = std::min(kBytesMax, device.Memory().free_bytes / 2);
  const int64_t copies = std::clamp<int64_t>(room / matrix_bytes, 1, repetitions);
  GpuOperands operands(device, /*seed=*/1);
  // Random numbers: zeros would be faster, since they take less power.
  const std::vector<Bf16> random = GpuOperands::Rounded(operands.Random(panels * kPanelCols * k));
  auto* w = static_cast<uint8_t*>(operands.Make(copies * matrix_bytes));
  auto* a = static_cast<uint8_t*>(operands.Make(shape.m * k * sizeof(Bf16)));
  void* out = operands.Make(int64_t{shape.m} * shape.n * static_cast<int64_t>(sizeof(float)));
  if (w == nullptr || a == nullptr || out == nullptr) {
    return Status(StatusCode::kResourceExhausted, "the device has no room for a product of " +
                                                      std::to_string(matrix_bytes) + " bytes");
  }
  for (int64_t i = 0; i < copies; ++i) {
    device.CopyToDevice(w + i * matrix_bytes, random.data(), matrix_bytes);
  }
  for (int32_t row = 0; row < shape.m; ++row) {
    device.CopyToDevice(a + row * k * sizeof(Bf16), random.data() + row % shape.n * k,
                        k * sizeof(Bf16));
  }
  const auto run = [&](int64_t copy) {
    device.Run(cuda::GemmLaunch(
        DType::kBf16, cuda::GemmOutput::kStore, DType::kBf16,
        {.a = a,
         .lda = k / 2,
         .w = w + copy % copies * matrix_bytes,
         .m = shape.m,
         .columns = shape.n,
         .words = static_cast<int32_t>(k / 2),
         .out = out,
         .ldo = shape.n},
        {.shared_bytes = device.shared_bytes(), .persistent_blocks = device.persistent_blocks()}));
  };
  run(0);  // warm-up
  SKEIN_RETURN_IF_ERROR(device.WaitForAll());
  const auto begin = std::chrono::steady_clock::now();
  for (int32_t i = 0; i < repetitions; ++i) run(i);
  SKEIN_RETURN_IF_ERROR(device.WaitForAll());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return seconds.count() / repetitions;
}

}  // namespace skein
