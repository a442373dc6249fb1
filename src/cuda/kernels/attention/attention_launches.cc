// The launches of attention that launches.h declares.

#include "base/check.h"
#include "cuda/kernels/attention/attention.h"
#include "cuda/kernels/attention/attention_specialized.h"
#include "cuda/kernels/attention/attention_wide.h"
#include "cuda/kernels/launch_shapes.h"
#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

bool IsExtended(const AttentionArgs& args) {
  return args.sinks != nullptr || args.tokens != nullptr || args.shared.of_tiles != nullptr;
}
AttentionKind KindOf(const AttentionArgs& args) {
  SKEIN_CHECK(args.soft_cap <= 0 || args.distances.terms == nullptr);
  if (args.soft_cap > 0) return AttentionKind::kCapped;
  if (args.distances.terms != nullptr) return AttentionKind::kBiased;
  return IsExtended(args) ? AttentionKind::kExtended : AttentionKind::kPlain;
}

// The kernel of the kind that the arguments need.
KernelId KernelOfKind(KernelId plain, const AttentionArgs& args) {
  using enum KernelId;
  const int index = static_cast<int>(plain) - static_cast<int>(kAttentionF32);
  switch (KindOf(args)) {
    case AttentionKind::kPlain:
      return plain;
    case AttentionKind::kExtended:
      return static_cast<KernelId>(static_cast<int>(kExtendedAttentionF32) + index);
    case AttentionKind::kCapped:
      return static_cast<KernelId>(static_cast<int>(kCappedAttentionF32) + index);
    case AttentionKind::kBiased:
      return static_cast<KernelId>(static_cast<int>(kBiasedAttentionF32) + index);
  }
  SKEIN_CHECK(false);
}

template <class Shape>
Launch AttentionLaunch(KernelId kernel, const AttentionArgs& args) {
  const Shape shape(args.head_dim_padded);
  SKEIN_CHECK(shape.stages >= 1 && args.num_tiles <= kMaxAttentionTiles);
  return {KernelOfKind(kernel, args),
          {{static_cast<uint32_t>(args.num_kv_heads), static_cast<uint32_t>(args.num_tiles),
            static_cast<uint32_t>(args.num_segments * shape.parts())},
           kAttentionThreads,
           shape.shared_bytes()},
          args};
}

template <int kHeadWords>
Launch WideAttentionLaunch(KernelId specialized, KernelId kernel, bool has_phases,
                           const AttentionArgs& args) {
  SKEIN_CHECK(args.num_tiles <= kMaxAttentionTiles);
  LaunchShape shape = {
      {static_cast<uint32_t>(args.num_kv_heads), static_cast<uint32_t>(args.num_tiles),
       static_cast<uint32_t>(args.num_segments)},
      kWideThreads,
      sizeof(WideMemory<kHeadWords>)};
  if (!has_phases) return {KernelOfKind(kernel, args), shape, args};
  shape.threads = kSpecializedThreads;
  shape.shared_bytes = sizeof(SpecializedMemory<kHeadWords>);
  return {KernelOfKind(specialized, args), shape, args};
}

}  // namespace

Launch AttentionLaunch(DType dtype, const AttentionArgs& args, bool has_phases) {
  SKEIN_CHECK(args.head_dim <= args.head_dim_padded && args.head_dim_padded <= kMaxHeadDim);
  const int32_t wide_rows = WideRows(dtype, args.head_dim_padded);
  // Kernels for one width of heads know neither hidden keys nor terms nor caps.
  const bool any_width =
      args.visible != nullptr || args.relative.rows != nullptr || !IsForCommonWidths(KindOf(args));
  SKEIN_CHECK(args.tile_rows == kAttentionRows || args.tile_rows == kFourWarpRows ||
              (args.tile_rows == wide_rows && !any_width));
  SKEIN_CHECK(args.relative.rows == nullptr || KindOf(args) == AttentionKind::kPlain);
  SKEIN_CHECK(args.num_kv_heads == args.num_heads ||
              (args.relative.rows == nullptr && args.distances.terms == nullptr));
  if (dtype == DType::kF32) {
    return AttentionLaunch<AttentionShape<float, 8, 0>>(KernelId::kAttentionF32, args);
  }
  if (args.tile_rows == kFourWarpRows || any_width) {
    return AttentionLaunch<AttentionShape<Bf16, 16, 0>>(KernelId::kAttentionBf16, args);
  }
  if (args.tile_rows == kWideAttentionRows) {
    using enum KernelId;
    return args.head_dim_padded == 64
               ? WideAttentionLaunch<32>(kSpecializedAttentionHead64, kWideAttentionHead64,
                                         has_phases, args)
               : WideAttentionLaunch<64>(kSpecializedAttentionHead128, kWideAttentionHead128,
                                         has_phases, args);
  }
  if (args.head_dim_padded == 64) {
    return AttentionLaunch<AttentionShape<Bf16, 8, 4>>(KernelId::kAttentionBf16Head64, args);
  }
  if (args.head_dim_padded == 128) {
    return AttentionLaunch<AttentionShape<Bf16, 16, 8>>(KernelId::kAttentionBf16Head128, args);
  }
  return AttentionLaunch<AttentionShape<Bf16, 16, 0>>(KernelId::kAttentionBf16, args);
}

Launch MergeSegmentsLaunch(DType dtype, const AttentionArgs& args) {
  const int64_t rows = int64_t{args.num_tiles} * args.num_kv_heads * args.tile_rows;
  const KernelId f32 =
      IsExtended(args) ? KernelId::kExtendedMergeSegmentsF32 : KernelId::kMergeSegmentsF32;
  return {OfType(f32, dtype), LanesShape(rows), args};
}

int64_t PartialBytes(const AttentionArgs& args) {
  const int64_t rows =
      int64_t{args.num_segments} * args.num_tiles * args.num_kv_heads * args.tile_rows;
  return rows * (2 + args.head_dim) * static_cast<int64_t>(sizeof(float));
}

}  // namespace skein::cuda
