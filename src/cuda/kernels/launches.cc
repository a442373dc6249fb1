#include "cuda/kernels/launches.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/ceil_div.h"
#include "base/check.h"
#include "cuda/kernels/draws/draw.h"
#include "cuda/kernels/draws/weigh_groups.h"
#include "cuda/kernels/encoder_rows.h"
#include "cuda/kernels/experts.h"
#include "cuda/kernels/gemm_blocks.h"
#include "cuda/kernels/gemm_blocks_few.h"
#include "cuda/kernels/gemm_tiles.h"
#include "cuda/kernels/heads.h"
#include "cuda/kernels/largest.h"
#include "cuda/kernels/launch_shapes.h"
#include "cuda/kernels/linear_attention.h"
#include "cuda/kernels/many_heads.h"
#include "cuda/kernels/rows.h"
#include "kernels/kernels.h"

namespace skein::cuda {
namespace {

bool IsAligned(const void* pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

// A tile of a product.
struct TileTraits {
  int32_t rows = 0;
  int32_t output_columns = 0;
  uint32_t threads = 0;
  int64_t shared_bytes = 0;
};

template <TileSize kSize, bool kGated>
TileTraits TraitsOfTile() {
  using Tile = typename TileOf<kSize, kGated>::Tile;
  constexpr int32_t kColumns = Tile::kBlockPanels * kPanelColumns;
  return {Tile::kRows, kGated ? kColumns / 2 : kColumns, Tile::kThreads,
          sizeof(typename Tile::Shared)};
}

template <bool kGated>
TileTraits TraitsOfTile(TileSize size) {
  switch (size) {
    case TileSize::kFew8:
      return TraitsOfTile<TileSize::kFew8, kGated>();
    case TileSize::kFew16:
      return TraitsOfTile<TileSize::kFew16, kGated>();
    case TileSize::kFew32:
      return TraitsOfTile<TileSize::kFew32, kGated>();
    case TileSize::kDeep32:
      return TraitsOfTile<TileSize::kDeep32, kGated>();
    case TileSize::kMiddle:
      return TraitsOfTile<TileSize::kMiddle, kGated>();
    case TileSize::kDeep64:
      return TraitsOfTile<TileSize::kDeep64, kGated>();
    case TileSize::kLarge:
      return TraitsOfTile<TileSize::kLarge, kGated>();
    case TileSize::kHuge:
      return TraitsOfTile<TileSize::kHuge, kGated>();
    case TileSize::kPersistentLarge:
      return TraitsOfTile<TileSize::kPersistentLarge, kGated>();
    case TileSize::kPersistentHuge:
      return TraitsOfTile<TileSize::kPersistentHuge, kGated>();
  }
  SKEIN_CHECK(false);
}
TileTraits TraitsOfTile(TileSize size, GemmOutput output) {
  return output == GemmOutput::kGated ? TraitsOfTile<true>(size) : TraitsOfTile<false>(size);
}

int64_t NumTiles(const TileTraits& tile, const GemmArgs& args) {
  return int64_t{CeilDiv(args.columns, tile.output_columns)} * CeilDiv(args.m, tile.rows);
}

// Nanoseconds of a step on an H200: of a block that has a multiprocessor for itself, and of a
// multiprocessor that is full of blocks. By size of tile. They are fitted to the times of
// `skein bench gpu --parts tiles`, so that the tiles chosen are rarely slower than the best.
struct StepTimes {
  int32_t alone, busy;
};
constexpr StepTimes kStepTimes[] = {{120, 31},  {190, 85},  {270, 135}, {165, 180},
                                    {320, 180}, {195, 275}, {500, 490}, {770, 940}};
constexpr StepTimes kGatedStepTimes[] = {{190, 125}, {190, 140}, {340, 150}, {135, 165},
                                         {440, 220}, {160, 300}, {525, 545}, {850, 985}};

// The nanoseconds of a step of all blocks of a product with this tile.
int64_t CostOf(TileSize size, GemmOutput output, const GemmArgs& args) {
  const TileTraits tile = TraitsOfTile(size, output);
  const auto index = static_cast<size_t>(size);
  const StepTimes& times =
      output == GemmOutput::kGated ? kGatedStepTimes[index] : kStepTimes[index];
  const int64_t tiles = NumTiles(tile, args), at_once = kSharedBytes / tile.shared_bytes;
  return std::max<int64_t>(CeilDiv(tiles, kProcessors * at_once) * times.alone,
                           tiles * times.busy / kProcessors);
}

// A block of such a tile fills the shared memory of a multiprocessor. So the copies of the kernel
// behind it begin when it ends, and not before.
bool IsDeep(TileSize size) { return size == TileSize::kDeep32 || size == TileSize::kDeep64; }
constexpr int32_t kMostRowsWithoutDeep = 16;

// The best of the tiles that are compiled for a type and fit a device. Few rows have no deep ones:
// an H200 took 5 % longer for 16 tokens of a 4B model, although the products alone took less time.
TileSize ChooseTile(std::span<const TileSize> sizes, GemmOutput output, const GemmArgs& args,
                    const GemmChoice& choice) {
  if (choice.tile) return *choice.tile;
  std::optional<TileSize> best;
  int64_t least = 0;
  for (const TileSize size : sizes) {
    const TileTraits tile = TraitsOfTile(size, output);
    if (size == TileSize::kFew8 && args.m <= tile.rows) return size;
    if (tile.shared_bytes > choice.shared_bytes) continue;
    if (IsDeep(size) && args.m <= kMostRowsWithoutDeep) continue;
    const int64_t cost = CostOf(size, output, args);
    if (best && cost >= least) continue;
    best = size;
    least = cost;
  }
  return best.value_or(sizes.front());
}

constexpr TileSize kF32Sizes[] = {TileSize::kFew16, TileSize::kMiddle};
constexpr TileSize kBf16Sizes[] = {TileSize::kFew8,   TileSize::kFew16,  TileSize::kFew32,
                                   TileSize::kDeep32, TileSize::kMiddle, TileSize::kDeep64,
                                   TileSize::kLarge,  TileSize::kHuge};
constexpr TileSize kPersistentSizes[] = {TileSize::kPersistentLarge, TileSize::kPersistentHuge};
constexpr TileSize kInt8Sizes[] = {TileSize::kFew16, TileSize::kMiddle, TileSize::kLarge};

int IndexOf(std::span<const TileSize> sizes, TileSize size) {
  const auto found = std::ranges::find(sizes, size);
  SKEIN_CHECK(found != sizes.end());
  return static_cast<int>(found - sizes.begin());
}

// Sets what the arguments say of the tile.
LaunchShape GemmShape(const TileTraits& tile, GemmArgs* args) {
  args->column_tiles = CeilDiv(args->columns, tile.output_columns);
  return {{static_cast<uint32_t>(NumTiles(tile, *args))},
          tile.threads,
          static_cast<uint32_t>(tile.shared_bytes)};
}

// Nanoseconds on an H200 of a persistent tile's step, and of the tile beside its steps, fitted as
// StepTimes before gates and sums that are added took less time.
struct PersistentTimes {
  int32_t step, tile;
};
constexpr PersistentTimes kPersistentTimes[] = {{370, 4500}, {600, 10000}};
constexpr PersistentTimes kGatedPersistentTimes[] = {{385, 3000}, {620, 7500}};

// Passes of an H200 with persistent blocks for all products of large tiles: 512 tokens of a 4B
// model took 0.87 times as long, but 512 tokens of a 0.6B model 1.18 times, and 128 tokens of the
// 4B model 1.09 times. So small products have none.
constexpr double kLeastPersistentWork = 5e9;  // multiplications
constexpr int32_t kLeastPersistentRows = 256;

// Whether persistent blocks can compute a product of bf16.
bool CanPersist(GemmOutput output, const GemmArgs& args, const GemmChoice& choice) {
  constexpr uintptr_t kMapAlignment = 16;  // of a TensorMap's memory and strides, in bytes
  const int64_t shared_bytes = TraitsOfTile(TileSize::kPersistentHuge, output).shared_bytes;
  return choice.persistent_blocks > 0 && choice.shared_bytes >= shared_bytes + kPhaseBytes &&
         args.panels == nullptr && IsAligned(args.a, kMapAlignment) &&
         IsAligned(args.w, kMapAlignment) && args.lda % 4 == 0;
}

// Whether they do.
bool Persists(GemmOutput output, const GemmArgs& args, const GemmChoice& choice) {
  if (choice.tile) return *choice.tile >= TileSize::kPersistentLarge;
  const double columns = args.columns * (output == GemmOutput::kGated ? 2.0 : 1.0);
  return CanPersist(output, args, choice) && args.m >= kLeastPersistentRows &&
         args.m * columns * 2.0 * args.words >= kLeastPersistentWork;
}

TileSize ChoosePersistent(GemmOutput output, const GemmArgs& args, const GemmChoice& choice) {
  if (choice.tile) return *choice.tile;
  const auto cost = [&](TileSize size) {
    const auto index = static_cast<size_t>(size) - static_cast<size_t>(kPersistentSizes[0]);
    const PersistentTimes& times =
        output == GemmOutput::kGated ? kGatedPersistentTimes[index] : kPersistentTimes[index];
    const int64_t turns =
        CeilDiv(NumTiles(TraitsOfTile(size, output), args), choice.persistent_blocks);
    return turns * (int64_t{CeilDiv(args.words, kStepWords)} * times.step + times.tile);
  };
  return std::ranges::min(kPersistentSizes, {}, cost);
}

Launch PersistentLaunch(GemmOutput output, GemmArgs args, const GemmChoice& choice) {
  constexpr int64_t kWordBytes = 4, kPanelWords = TensorMap::kRowWords;
  SKEIN_CHECK(CanPersist(output, args, choice));
  const TileSize size = ChoosePersistent(output, args, choice);
  const TileTraits tile = TraitsOfTile(size, output);
  LaunchShape shape = GemmShape(tile, &args);
  shape.grid.x = std::min(shape.grid.x, static_cast<uint32_t>(choice.persistent_blocks));
  shape.threads = kPersistentThreads;
  shape.shared_bytes += kPhaseBytes;
  const bool gates = output == GemmOutput::kGated;
  const int64_t panels = CeilDiv(args.columns, kPanelColumns), words = args.words;
  const TensorMap rows = {.base = args.a,
                          .sizes = {words, args.m, 1},
                          .strides = {args.lda * kWordBytes, args.m * args.lda * kWordBytes},
                          .rows = tile.rows,
                          .matrices = 1};
  const TensorMap weights = {
      .base = args.w,
      .sizes = {kPanelWords, words * kPanelColumns / kPanelWords,
                panels + (gates ? args.up_panel : 0)},
      .strides = {kPanelWords * kWordBytes, words * kPanelColumns * kWordBytes},
      .rows = kStepWords * kPanelColumns / static_cast<int32_t>(kPanelWords),
      .matrices = kPersistentWarps / (gates ? 2 : 1)};
  KernelId first = KernelId::kBf16PersistentLargeStore;
  if (size == TileSize::kPersistentHuge) first = KernelId::kBf16PersistentHugeStore;
  return {static_cast<KernelId>(static_cast<int>(first) + static_cast<int>(output)), shape,
          PersistentGemmArgs{args, {rows, weights}}};
}

// Whether FewBlocksGemmKernel computes a product. BlocksGemmKernel is for grids of which each
// multiprocessor holds eight blocks: then they wait for memory at the same time.
bool HasFewBlockRows(const GemmArgs& args) {
  constexpr int64_t kRows = 64, kBlocksHeld = 1024;
  return args.m <= kRows ||
         NumBlocks(args.columns, kPanelColumns) * CeilDiv(args.m, kRows) < kBlocksHeld;
}

// `few`: the kernel for few rows, which that for many follows.
Launch BlocksGemmLaunch(KernelId few, bool many, bool gates, const GemmArgs& args) {
  SKEIN_CHECK(args.words % kBlockWords == 0 && args.lda >= args.words && args.m >= 1);
  const uint32_t panels = NumBlocks(args.columns, kPanelColumns);
  if (!many) {
    const size_t shared_bytes =
        gates ? sizeof(TurnOfBlocks<GemmOutput::kGated>) : sizeof(TurnOfBlocks<GemmOutput::kStore>);
    return {few,
            {{panels, NumBlocks(args.m, kFewBlockTileRows)},
             kFewBlockThreads,
             static_cast<uint32_t>(shared_bytes)},
            args};
  }
  const int tiles = gates ? kBlockTiles<GemmOutput::kGated> : kBlockTiles<GemmOutput::kStore>;
  return {static_cast<KernelId>(static_cast<int>(few) + 1),
          {{panels, NumBlocks(args.m, 16 * tiles)}, kWarpThreads, 0},
          args};
}

Launch BlocksGemmLaunch(GemmOutput output, DType gated, const GemmArgs& args) {
  const bool gates = output == GemmOutput::kGated;
  KernelId few = KernelId::kBlocksStore;
  if (output == GemmOutput::kAdd) few = KernelId::kBlocksAdd;
  if (gates) few = gated == DType::kBf16 ? KernelId::kBlocksGatedBf16 : KernelId::kBlocksGatedF32;
  return BlocksGemmLaunch(few, !HasFewBlockRows(args), gates, args);
}

Launch GroupedBlocksLaunch(GemmOutput output, DType gated, bool many, const GemmArgs& args) {
  using enum KernelId;
  const bool gates = output == GemmOutput::kGated;
  KernelId few = kGroupedBlocksStore;
  if (gates) few = gated == DType::kBf16 ? kGroupedBlocksGatedBf16 : kGroupedBlocksGatedF32;
  Launch launch = BlocksGemmLaunch(few, many, gates, args);
  launch.shape.grid.z = static_cast<uint32_t>(args.groups.num_groups);
  return launch;
}

// Whether StoreManyHeadsKernel can store these heads, and does it sooner.
bool StoresManyHeads(const StoreHeadsArgs& a) {
  const bool compiled = a.head_dim == 64 || a.head_dim == 128;
  const bool rotates_all = a.cos == nullptr || a.rotary_dim == a.head_dim;
  const bool loads_fours = IsAligned(a.qkv, 16) && IsAligned(a.q_norm, 16) &&
                           IsAligned(a.k_norm, 16) && IsAligned(a.cos, 16) && IsAligned(a.sin, 16);
  const bool stores_words =
      a.ldq % 4 == 0 && IsAligned(a.q, 8) && IsAligned(a.kv.pool, 16) && IsAligned(a.kv.own, 16);
  return a.num_tokens >= kManyHeadTokens && compiled && rotates_all && loads_fours && stores_words;
}

}  // namespace

Launch EmbedLaunch(DType table, bool panels, const EmbedArgs& args) {
  const LaunchShape shape = RowShape(args.num_tokens);
  SKEIN_CHECK(panels || (table != DType::kInt8 && table != DType::kBlocks));
  if (table == DType::kBlocks) return {KernelId::kEmbedBlocks, shape, args};
  if (table == DType::kInt8) return {KernelId::kEmbedPanelsInt8, shape, args};
  return {OfType(panels ? KernelId::kEmbedPanelsF32 : KernelId::kEmbedF32, table), shape, args};
}

Launch RmsNormLaunch(DType dtype, const RmsNormArgs& args) {
  SKEIN_CHECK(args.ldx >= args.width);
  return {OfType(KernelId::kRmsNormF32, dtype), RowShape(args.num_rows, sizeof(RowShared)), args};
}

Launch LayerNormLaunch(DType dtype, const LayerNormArgs& args) {
  SKEIN_CHECK(args.ldx >= args.width && (args.normed != args.x || args.rows == nullptr));
  return {OfType(KernelId::kLayerNormF32, dtype), RowShape(args.num_rows, sizeof(RowShared)), args};
}

Launch AddTableRowsLaunch(const AddTableRowsArgs& args) {
  return {KernelId::kAddTableRows, RowShape(args.num_rows), args};
}

Launch MeanLaunch(const MeanArgs& args) {
  return {
      KernelId::kMean,
      {{NumBlocks(args.width, kRowThreads), static_cast<uint32_t>(args.num_means)}, kRowThreads, 0},
      args};
}

Launch DeltaGatesLaunch(const DeltaGatesArgs& args) {
  const int64_t gates = int64_t{args.num_tokens} * args.num_heads;
  return {KernelId::kDeltaGates, {{NumBlocks(gates, kRowThreads)}, kRowThreads, 0}, args};
}

Launch ConvLaunch(const ConvArgs& args) {
  return {
      KernelId::kConv,
      {{NumBlocks(args.width, kRowThreads), static_cast<uint32_t>(args.num_tiles)}, kRowThreads, 0},
      args};
}

Launch StoreConvStatesLaunch(const ConvArgs& args) {
  return {
      KernelId::kStoreConvStates,
      {{NumBlocks(args.width, kRowThreads), static_cast<uint32_t>(args.num_rows)}, kRowThreads, 0},
      args};
}

Launch ScaleLinearHeadsLaunch(const ScaleLinearHeadsArgs& args) {
  return {KernelId::kScaleLinearHeads, LanesShape(int64_t{args.num_tokens} * 2 * args.num_k_heads),
          args};
}

Launch DeltaLaunch(const DeltaArgs& args) {
  SKEIN_CHECK(args.k_dim <= kMaxDeltaDim && args.k_dim % 4 == 0 && args.v_dim % kDeltaCols == 0);
  SKEIN_CHECK(args.ldx % 4 == 0 && IsAligned(args.x, 16) && IsAligned(args.gates, 16));
  const bool whole = args.k_dim == kWholeDeltaDim;
  const size_t shared_bytes =
      whole ? sizeof(DeltaShared<kWholeDeltaDim>) : sizeof(DeltaShared<kMaxDeltaDim>);
  return {whole ? KernelId::kDeltaHead128 : KernelId::kDelta,
          {{NumBlocks(int64_t{args.num_v_heads} * args.v_dim, kDeltaCols),
            static_cast<uint32_t>(args.num_rows)},
           kDeltaThreads,
           static_cast<uint32_t>(shared_bytes)},
          args};
}

Launch GatedNormLaunch(DType dtype, const GatedNormArgs& args) {
  return {OfType(KernelId::kGatedNormF32, dtype),
          LanesShape(int64_t{args.num_tokens} * args.num_heads), args};
}

Launch AttentionGateLaunch(DType dtype, const AttentionGateArgs& args) {
  return {OfType(KernelId::kAttentionGateF32, dtype), RowShape(args.num_rows), args};
}

Launch GatherLaunch(const GatherArgs& args) {
  LaunchShape shape = RowShape(args.num_rows);
  shape.grid.y = 2;
  return {KernelId::kGather, shape, args};
}

Launch ShareColumnsLaunch(const ShareColumnsArgs& args) {
  SKEIN_CHECK(args.num_peers >= 1 && args.num_peers < kMaxRanks && args.words >= 1);
  LaunchShape shape = RowShape(args.num_rows);
  shape.grid.y = static_cast<uint32_t>(args.num_peers);
  return {KernelId::kShareColumns, shape, args};
}

Launch BranchLaunch(const BranchArgs& args) {
  return {KernelId::kBranch, RowShape(args.num_rows, sizeof(RowShared)), args};
}

Launch ActivateLaunch(DType dtype, const ActivateArgs& args) {
  SKEIN_CHECK(args.gate != Gate::kClampedSwiglu);
  return {OfType(KernelId::kActivateF32, dtype), RowShape(args.num_rows), args};
}

Launch GateSumsLaunch(DType dtype, const GateSumsArgs& args) {
  return {OfType(KernelId::kGateSumsF32, dtype), RowShape(args.num_rows), args};
}

Launch QuantizeLaunch(DType dtype, const QuantizeArgs& args) {
  return {OfType(KernelId::kQuantizeF32, dtype), RowShape(args.num_rows, sizeof(QuantizeShared)),
          args};
}

Launch QuantizeBlocksLaunch(DType dtype, const QuantizeArgs& args) {
  SKEIN_CHECK(args.width % kBlockTerms == 0 && args.ldx % 8 == 0 && args.ldo % 8 == 0);
  LaunchShape shape = RowShape(args.num_rows);
  shape.grid.y = NumBlocks(args.width / kBlockTerms, kBlocksAtOnce);
  return {OfType(KernelId::kQuantizeBlocksF32, dtype), shape, args};
}

Launch StoreHeadsLaunch(DType dtype, const StoreHeadsArgs& args) {
  const int64_t heads = args.num_heads + 2 * args.num_kv_heads;
  SKEIN_CHECK(args.head_dim <= kMaxHeadDim);
  if (dtype == DType::kBf16 && StoresManyHeads(args)) {
    return {
        args.head_dim == 64 ? KernelId::kStoreHeadsBf16Head64 : KernelId::kStoreHeadsBf16Head128,
        {{NumBlocks(heads, kHeadsPerBlock), NumBlocks(args.num_tokens, kTokensOfWarp)},
         kRowThreads,
         0},
        args};
  }
  LaunchShape shape = LanesShape(args.num_tokens * heads);
  shape.shared_bytes = sizeof(StoreHeadsShared);
  return {OfType(KernelId::kStoreHeadsF32, dtype), shape, args};
}

Launch CopySlotsLaunch(DType dtype, const CopySlotsArgs& args) {
  return {OfType(KernelId::kCopySlotsF32, dtype),
          {{static_cast<uint32_t>(args.num_copies), static_cast<uint32_t>(args.num_kv_heads),
            static_cast<uint32_t>(args.num_layers)},
           kRowThreads,
           0},
          args};
}

Launch GemmLaunch(DType dtype, GemmOutput output, DType gated, GemmArgs args,
                  const GemmChoice& choice) {
  if (dtype == DType::kBlocks) return BlocksGemmLaunch(output, gated, args);
  SKEIN_CHECK(args.words % (kStepWords / 2) == 0 && args.lda >= args.words && args.m >= 1);
  std::span<const TileSize> sizes = kF32Sizes;
  KernelId first = KernelId::kF32Few16Store;
  int outputs = 3, index = static_cast<int>(output);
  if (dtype == DType::kBf16) {
    if (Persists(output, args, choice)) return PersistentLaunch(output, args, choice);
    sizes = kBf16Sizes;
    first = KernelId::kBf16Few8Store;
  } else if (dtype == DType::kInt8) {
    sizes = kInt8Sizes;
    first = KernelId::kInt8Few16Store;
    outputs = 4;
    if (output == GemmOutput::kGated && gated == DType::kBf16) ++index;
  }
  const TileSize size = ChooseTile(sizes, output, args, choice);
  const auto id =
      static_cast<KernelId>(static_cast<int>(first) + IndexOf(sizes, size) * outputs + index);
  const LaunchShape shape = GemmShape(TraitsOfTile(size, output), &args);
  return {id, shape, args};
}

Launch FinishLogitsLaunch(const FinishLogitsArgs& args) {
  constexpr int64_t kPerBlock = int64_t{kRowThreads} * kLogitsOfThread;
  return {KernelId::kFinishLogits, {{NumBlocks(args.num_logits, kPerBlock)}, kRowThreads, 0}, args};
}

Launch FindLargestLaunch(FindLargestArgs args) {
  SKEIN_CHECK(args.num_parts == 1 || args.parts != nullptr);
  args.part_width = static_cast<int32_t>(CeilDiv(args.width, 4 * args.num_parts)) * 4;
  return {KernelId::kFindLargest,
          {{static_cast<uint32_t>(args.num_parts), static_cast<uint32_t>(args.num_rows)},
           kLargestThreads,
           sizeof(LargestOfWarps)},
          args};
}

Launch MergeLargestLaunch(const FindLargestArgs& args) {
  return {KernelId::kMergeLargest,
          {{NumBlocks(args.num_rows, kRowThreads / kWarpThreads)}, kRowThreads, 0},
          args};
}

static_assert(kDrawGroup == kRowGroup);
Launch WeighGroupsLaunch(const DrawArgs& args) {
  return {
      KernelId::kWeighGroups,
      {{NumBlocks(NumDrawGroups(args.vocab), kGroupsOfBlock), static_cast<uint32_t>(args.num_rows)},
       kDrawThreads,
       0},
      args};
}

Launch DrawLaunch(const DrawArgs& args) {
  return {KernelId::kDraw,
          {{static_cast<uint32_t>(args.num_rows)}, kDrawThreads, sizeof(DrawShared)},
          args};
}

Launch ChooseExpertsLaunch(const ChooseExpertsArgs& args) {
  SKEIN_CHECK(args.num_experts <= kMaxExperts && args.per_token <= kMaxExpertsPerToken);
  SKEIN_CHECK(args.per_token >= 1 && args.per_token <= args.num_experts);
  SKEIN_CHECK(args.ldl >= args.num_experts && args.shared_logit < args.ldl);
  const bool shared = args.shared_weights != nullptr;
  return {shared ? KernelId::kChooseExpertsAndShared : KernelId::kChooseExperts,
          {{NumBlocks(args.num_tokens, kExpertWarps)}, kExpertThreads, 0},
          args};
}

Launch ListSlotsLaunch(const ListSlotsArgs& args) {
  SKEIN_CHECK(args.num_slots >= 1);
  return {KernelId::kListSlots,
          {{static_cast<uint32_t>(args.num_experts)}, kListThreads, sizeof(ListSlotsShared)},
          args};
}

Launch SumExpertsLaunch(const SumExpertsArgs& args) {
  SKEIN_CHECK(args.stride >= args.width);
  return {
      KernelId::kSumExperts,
      {{NumBlocks(args.width, kRowStep), static_cast<uint32_t>(args.num_tokens)}, kRowThreads, 0},
      args};
}

Launch GroupedGemmLaunch(DType dtype, GemmOutput output, DType gated, int64_t num_slots,
                         GemmArgs args) {
  const bool gates = output == GemmOutput::kGated;
  SKEIN_CHECK(output != GemmOutput::kAdd && args.groups.num_groups >= 1);
  SKEIN_CHECK(args.groups.panels >= 1 && args.panels == nullptr);
  const bool few = num_slots <= int64_t{kFewGroupedRows} * args.groups.num_groups;
  if (dtype == DType::kBlocks) return GroupedBlocksLaunch(output, gated, !few, args);
  SKEIN_CHECK(args.words % (kStepWords / 2) == 0 && args.lda >= args.words && args.m >= 1);
  SKEIN_CHECK(dtype == DType::kInt8 || !gates || gated == dtype);
  int id = static_cast<int>(KernelId::kGroupedF32Few16Store), outputs = 2;
  if (dtype == DType::kBf16) id = static_cast<int>(KernelId::kGroupedBf16Few16Store);
  if (dtype == DType::kInt8) {
    id = static_cast<int>(KernelId::kGroupedInt8Few16Store);
    outputs = 3;
    if (gates && gated == DType::kBf16) ++id;
  }
  if (!few) id += outputs;
  if (gates) ++id;
  LaunchShape shape =
      GemmShape(TraitsOfTile(few ? TileSize::kFew16 : TileSize::kMiddle, output), &args);
  shape.grid.z = static_cast<uint32_t>(args.groups.num_groups);
  return {static_cast<KernelId>(id), shape, args};
}

}  // namespace skein::cuda
