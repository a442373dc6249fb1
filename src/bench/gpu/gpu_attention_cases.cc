#include "bench/gpu/gpu_attention_cases.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/ceil_div.h"
#include "bench/gpu/gpu_operands.h"
#include "cuda/kernels/launches.h"
#include "kernels/kv_layout.h"

namespace skein {
namespace {

// A case may have more than the walk: sinks, capped scores or terms of distances. The walk of a
// prefix has its partial sums as its result; another one goes on behind a prefix.
enum class Extra : uint8_t { kNone, kSinks, kCap, kDistances, kPrefix, kBehindPrefix };

// Tokens of one sequence with kKeys keys: the last ones, or those in the middle if they see keys
// behind their own. Two query heads share one KV head; with terms, each has its own.
struct AttentionCase {
  static constexpr int32_t kKeys = 140, kHeads = 2;

  int32_t head_dim = 64;
  int32_t num_tokens = 40;  // up to 8: narrow tiles
  int32_t keys_before = -1, keys_after = 0;
  bool hides_keys = false;
  bool has_terms = false;  // of all keys' tokens
  Extra extra = Extra::kNone;

  constexpr bool has_own_keys() const { return has_terms || extra == Extra::kDistances; }
  constexpr int32_t num_kv_heads() const { return has_own_keys() ? kHeads : 1; }
  constexpr int32_t rows() const { return num_tokens * kHeads / num_kv_heads(); }
  constexpr int32_t begin() const { return (kKeys - num_tokens) / (keys_after > 0 ? 2 : 1); }
};
constexpr AttentionCase kPromptCase, kDecodeCase = {.num_tokens = 1};
constexpr AttentionCase kBothSidesCase = {.num_tokens = 100, .keys_after = cuda::kAllKeys};

constexpr AttentionCase WithHeadsOf(int32_t head_dim, AttentionCase one) {
  one.head_dim = head_dim;
  return one;
}
constexpr AttentionCase WithTokens(int32_t num_tokens, AttentionCase one) {
  one.num_tokens = num_tokens;
  return one;
}
constexpr AttentionCase WithHiddenKeys(AttentionCase one) {
  one.hides_keys = true;
  return one;
}

constexpr AttentionCase With(Extra extra, AttentionCase one) {
  one.extra = extra;
  return one;
}

int32_t TileRows(DType dtype, const AttentionCase& one) {
  constexpr auto kManyBlocks = std::numeric_limits<int64_t>::max();
  const bool four_warps =
      one.hides_keys || one.has_terms || one.extra == Extra::kCap || one.extra == Extra::kDistances;
  const int32_t wide = four_warps ? cuda::kFourWarpRows : cuda::WideRows(dtype, one.head_dim);
  return cuda::AttentionTileRows(wide, one.rows(), kManyBlocks);
}

constexpr int32_t kVisibleWords = 2 * CeilDiv(AttentionCase::kKeys, kKeysPerStep);

// Random bits of keys. Each third token sees no key of the second step; all see the first key.
std::vector<int32_t> VisibleKeys(GpuOperands& operands, int32_t num_tokens) {
  using Limits = std::numeric_limits<int32_t>;
  std::vector<int32_t> words;
  for (int32_t token = 0; token < num_tokens; ++token) {
    for (int32_t i = 0; i < kVisibleWords; ++i) {
      const bool hides = token % 3 == 0 && i / 2 == 1;
      words.push_back(hides ? 0 : operands.Integer(Limits::min(), Limits::max()));
    }
    words[words.size() - kVisibleWords] |= 1;
  }
  return words;
}

// Random terms by a table of 64 rows.
cuda::RelativeTerms RandomTerms(GpuOperands& operands, int32_t num_tokens) {
  constexpr int32_t kRows = 64;
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < 2 * num_tokens - 1; ++i) rows.push_back(operands.Integer(0, kRows - 1));
  const size_t count = size_t{2} * AttentionCase::kHeads * num_tokens * kRows;
  return {.rows = operands.Put(rows),
          .num_positions = num_tokens,
          .num_rows = kRows,
          .num_tokens = num_tokens,
          .terms = operands.Put(operands.Random(count))};
}

// The keys of a shared prefix: two steps, or the first one.
constexpr int32_t kPrefixKeys = 2 * kKeysPerStep;

void AddExtra(GpuOperands& operands, const AttentionCase& one, cuda::AttentionArgs* args) {
  using cuda::kAttentionRows;
  constexpr int32_t kHeads = AttentionCase::kHeads, kPositions = AttentionCase::kKeys;
  switch (one.extra) {
    case Extra::kNone:
      return;
    case Extra::kSinks:
      args->sinks = operands.Put(operands.Random(kHeads));
      return;
    case Extra::kCap:
      args->soft_cap = 1.5f;
      return;
    case Extra::kDistances:
      args->distances = {operands.Put(operands.Random(kHeads * 2 * kPositions)), 2 * kPositions,
                         kPositions};
      return;
    case Extra::kPrefix: {
      std::vector<int32_t> tokens;
      for (int32_t i = one.num_tokens; i-- > 0;) tokens.push_back(i);
      args->tokens = operands.Put(tokens);
      args->partial = operands.Put(std::vector<float>(cuda::PartialBytes(*args) / sizeof(float)));
      return;
    }
    case Extra::kBehindPrefix: {
      const int32_t num_rows = CeilDiv(one.rows(), kAttentionRows) * kAttentionRows;
      std::vector<float> partial = operands.Random(size_t(num_rows) * (2 + one.head_dim));
      for (float& x : partial) x = std::abs(x);
      args->shared = {operands.Put(std::vector<cuda::SharedPrefix>(args->num_tiles,
                                                                   {.num_keys = kKeysPerStep})),
                      operands.Put(partial), kAttentionRows};
      return;
    }
  }
}

template <typename T, AttentionCase kCase>
Result<std::vector<float>> RunAttention(cuda::Device& device, uint64_t seed) {
  constexpr DType kType = std::is_same_v<T, Bf16> ? DType::kBf16 : DType::kF32;
  constexpr int32_t kDim = kCase.head_dim, kTokens = kCase.num_tokens;
  constexpr int32_t kHeads = AttentionCase::kHeads, kRows = kTokens * kHeads, kBlocks = 5;
  const KvLayout layout = {kType, 1, kBlocks, kCase.num_kv_heads(), kDim};
  GpuOperands operands(device, seed);
  const auto typed = [&](size_t count) {
    const std::vector<float> values = operands.Random(count);
    if constexpr (std::is_same_v<T, Bf16>) return GpuOperands::Rounded(values);
    if constexpr (std::is_same_v<T, float>) return values;
  };
  const int32_t tile_rows = TileRows(kType, kCase);
  std::vector<cuda::AttentionTile> tiles;
  for (int32_t row = 0; row < kCase.rows(); row += tile_rows) {
    const bool prefix = kCase.extra == Extra::kPrefix;
    tiles.push_back({0, kTokens, prefix ? kPrefixKeys : kCase.begin(), 0, row,
                     prefix ? kPrefixKeys : AttentionCase::kKeys});
  }
  auto* out = static_cast<T*>(operands.Make(kRows * kDim * sizeof(T)));
  auto* kv = operands.Put(typed(layout.total_bytes() / sizeof(T)));
  cuda::AttentionArgs args = {.tiles = operands.Put(tiles),
                              .tables = operands.Put(std::vector<int32_t>{3, 0, 4, 1, 2}),
                              .num_tiles = CeilDiv(kCase.rows(), tile_rows),
                              .tile_rows = tile_rows,
                              .num_segments = 1,
                              .keys_before = kCase.keys_before,
                              .keys_after = kCase.keys_after,
                              .num_heads = kHeads,
                              .num_kv_heads = kCase.num_kv_heads(),
                              .head_dim = kDim,
                              .head_dim_padded = kDim,
                              .scale = 0.125f,
                              .q = operands.Put(typed(kRows * kDim)),
                              .ldq = kHeads * kDim,
                              .out = out,
                              .ldo = kHeads * kDim,
                              .kv = {.pool = reinterpret_cast<uint8_t*>(kv),
                                     .num_pool_blocks = kBlocks,
                                     .block_bytes = static_cast<int64_t>(layout.block_bytes()),
                                     .head_bytes = static_cast<int64_t>(layout.head_bytes())}};
  if (kCase.hides_keys) {
    const int32_t* const words = operands.Put(VisibleKeys(operands, kTokens));
    args.visible = reinterpret_cast<const uint32_t*>(words);
    args.visible_words = kVisibleWords;
  }
  if (kCase.has_terms) args.relative = RandomTerms(operands, kTokens);
  AddExtra(operands, kCase, &args);
  if (kCase.extra == Extra::kPrefix) {
    return operands.Run(cuda::AttentionLaunch(kType, args, device.has_phases()), args.partial,
                        cuda::PartialBytes(args) / sizeof(float));
  }
  return operands.Run(cuda::AttentionLaunch(kType, args, device.has_phases()), out, kRows * kDim);
}

}  // namespace

std::vector<GpuCase> GpuAttentionCases() {
  constexpr AttentionCase kWindow = {.keys_before = 50};
  constexpr AttentionCase kSides = {.num_tokens = 90, .keys_before = 40, .keys_after = 20};
  constexpr AttentionCase kFew = WithTokens(8, kBothSidesCase);
  constexpr AttentionCase kFewTokens = WithTokens(8, kPromptCase);
  constexpr AttentionCase kMany = WithTokens(100, kPromptCase);
  constexpr AttentionCase kTerms = {
      .num_tokens = AttentionCase::kKeys, .keys_after = cuda::kAllKeys, .has_terms = true};
  return {
      {"attention f32", true, RunAttention<float, kPromptCase>},
      {"attention bf16", false, RunAttention<Bf16, kPromptCase>},
      {"attention f32, window", true, RunAttention<float, kWindow>},
      {"decode f32", true, RunAttention<float, kDecodeCase>},
      {"decode bf16", false, RunAttention<Bf16, kDecodeCase>},
      {"attention bf16, 128", false, RunAttention<Bf16, WithHeadsOf(128, kPromptCase)>},
      {"decode bf16, 128", false, RunAttention<Bf16, WithHeadsOf(128, kDecodeCase)>},
      {"attention bf16, 256", false, RunAttention<Bf16, WithHeadsOf(256, kPromptCase)>},
      {"both sides f32", true, RunAttention<float, kBothSidesCase>},
      {"both sides bf16", false, RunAttention<Bf16, kBothSidesCase>},
      {"both sides bf16, 128", false, RunAttention<Bf16, WithHeadsOf(128, kBothSidesCase)>},
      {"both sides bf16, window", false, RunAttention<Bf16, kSides>},
      {"both sides f32, few", true, RunAttention<float, kFew>},
      {"both sides bf16, few", false, RunAttention<Bf16, kFew>},
      {"hidden keys f32", true, RunAttention<float, WithHiddenKeys(kBothSidesCase)>},
      {"hidden keys f32, few", true, RunAttention<float, WithHiddenKeys(kFew)>},
      {"hidden keys bf16", false, RunAttention<Bf16, WithHiddenKeys(kBothSidesCase)>},
      {"hidden keys bf16, few", false, RunAttention<Bf16, WithHiddenKeys(kFew)>},
      {"hidden keys bf16, 128", false,
       RunAttention<Bf16, WithHiddenKeys(WithHeadsOf(128, kBothSidesCase))>},
      {"terms f32", true, RunAttention<float, kTerms>},
      {"terms bf16", false, RunAttention<Bf16, kTerms>},
      {"sinks f32", true, RunAttention<float, With(Extra::kSinks, kPromptCase)>},
      {"sinks bf16", false, RunAttention<Bf16, With(Extra::kSinks, kPromptCase)>},
      {"sinks bf16, decode", false, RunAttention<Bf16, With(Extra::kSinks, kDecodeCase)>},
      {"sinks bf16, many", false, RunAttention<Bf16, With(Extra::kSinks, kMany)>},
      {"caps f32", true, RunAttention<float, With(Extra::kCap, kPromptCase)>},
      {"caps bf16", false, RunAttention<Bf16, With(Extra::kCap, kPromptCase)>},
      {"caps bf16, decode", false, RunAttention<Bf16, With(Extra::kCap, kDecodeCase)>},
      {"distances f32", true, RunAttention<float, With(Extra::kDistances, kBothSidesCase)>},
      {"distances bf16", false, RunAttention<Bf16, With(Extra::kDistances, kBothSidesCase)>},
      {"prefix f32", true, RunAttention<float, With(Extra::kPrefix, kPromptCase)>},
      {"prefix bf16", false, RunAttention<Bf16, With(Extra::kPrefix, kFewTokens)>},
      {"prefix bf16, 128", false,
       RunAttention<Bf16, WithHeadsOf(128, With(Extra::kPrefix, kPromptCase))>},
      {"behind a prefix f32", true, RunAttention<float, With(Extra::kBehindPrefix, kPromptCase)>},
      {"behind a prefix bf16", false, RunAttention<Bf16, With(Extra::kBehindPrefix, kFewTokens)>},
      {"behind a prefix bf16, 128", false,
       RunAttention<Bf16, WithHeadsOf(128, With(Extra::kBehindPrefix, kPromptCase))>},
  };
}

}  // namespace skein
