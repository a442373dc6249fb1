#pragma once

// The arguments of the kernels. Pointers are addresses of the device. "T" is the compute type, f32
// or bf16. Matrices of T whose rows are multiplied by weights have padded rows: they have
// PaddedWidth elements, and the padding is zeros.

#include <cstdint>

#include "base/blocks/block_format.h"
#include "base/dtype.h"
#include "kernels/kv_layout.h"
#include "kernels/linear_shape.h"

namespace skein::cuda {

// The width of a row that is multiplied by weights: that of the weights' own rows (PackedWeight).
inline int64_t PaddedWidth(int64_t width, DType dtype) {
  const int64_t step = dtype == DType::kInt8 ? 64 : 32;
  return (width + step - 1) / step * step;
}

// One panel of a PackedWeight of blocks: its format, and where it lies.
struct PanelPlace {
  int64_t values = 0;  // bytes from the matrix's begin
  int64_t scales = 0;
  int32_t bits = 0;  // of a value
  uint32_t zero = 0;
  bool codebook = false;
  BlockScales kind = BlockScales::kHalf;
};

// x[i] = the embedding of tokens[i], times scale.
struct EmbedArgs {
  const int32_t* tokens = nullptr;     // [num_tokens]
  const void* table = nullptr;         // T [vocab, hidden], or the panels of a PackedWeight
  const float* scales = nullptr;       // [vocab], of int8 panels
  const PanelPlace* places = nullptr;  // [vocab / 16], of panels of blocks
  int32_t num_tokens = 0;
  int32_t hidden = 0;
  int32_t words = 0;  // words of 32 bits in a row of panels, padding included
  float scale = 1.0f;
  float* x = nullptr;  // [num_tokens, hidden]
};

// out[i] = the RMSNorm of x[rows[i]], rounded to T. `out` may be `x`.
struct RmsNormArgs {
  const float* x = nullptr;  // [*, ldx]
  int64_t ldx = 0;
  const int32_t* rows = nullptr;  // [num_rows]; null: 0, 1, ...
  const float* weight = nullptr;  // [width]; null: there is no norm, x is rounded
  int32_t num_rows = 0;
  int32_t width = 0;
  float eps = 0.0f;
  void* out = nullptr;  // T [num_rows, ldo]
  int64_t ldo = 0;
};

// The LayerNorm of x[rows[i]], in f32 and rounded to T. `normed` may be x, if `rows` is null.
struct LayerNormArgs {
  const float* x = nullptr;  // [*, ldx]
  int64_t ldx = 0;
  const int32_t* rows = nullptr;  // [num_rows]; null: 0, 1, ...
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]
  int32_t num_rows = 0;
  int32_t width = 0;
  float eps = 0.0f;
  float* normed = nullptr;  // [num_rows, width] or null
  void* out = nullptr;      // T [num_rows, ldo] or null
  int64_t ldo = 0;
};

// x[i] = x[i] + table[rows[i]].
struct AddTableRowsArgs {
  const float* table = nullptr;   // [*, width]
  const int32_t* rows = nullptr;  // [num_rows]
  int32_t num_rows = 0;
  int32_t width = 0;
  float* x = nullptr;  // [num_rows, width]
};

// The mean of adjacent rows.
struct RowsOfMean {
  int32_t first = 0, count = 0;
};
struct MeanArgs {
  const float* x = nullptr;          // [*, width]
  const RowsOfMean* rows = nullptr;  // [num_means]
  int32_t num_means = 0;
  int32_t width = 0;
  float* out = nullptr;  // [num_means, width]
};

// Row i of `to` becomes row rows[i] of `from`. Both have rows of words of 32 bits, and do not
// overlap.
struct GatheredMatrix {
  const void* from = nullptr;  // [*, words]
  void* to = nullptr;          // [num_rows, words]
  int32_t words = 0;
};
struct GatherArgs {
  const int32_t* rows = nullptr;  // [num_rows]
  int32_t num_rows = 0;
  GatheredMatrix first, second;
};

// Columns of a matrix, which all other ranks get at the same place of their own matrices.
inline constexpr int32_t kMaxRanks = 8;
struct ShareColumnsArgs {
  const uint32_t* from = nullptr;    // words of 32 bits [num_rows, stride]
  uint32_t* to[kMaxRanks - 1] = {};  // the same, of [num_peers] other devices
  int32_t num_peers = 0;
  int32_t num_rows = 0;
  int64_t stride = 0;
  int32_t words = 0;  // of a row of columns; `from` and `to` begin with them
};

// x = x + scale * the RMSNorm of branch, row by row.
struct BranchArgs {
  const float* branch = nullptr;  // [num_rows, width]
  const float* weight = nullptr;  // [width]; null: there is no norm
  float eps = 0.0f;
  float scale = 1.0f;
  int32_t num_rows = 0;
  int32_t width = 0;
  float* x = nullptr;  // [num_rows, width]
};

// Rounds rows of T to int8 (docs/numerics.md, "Int8"), or each 32 elements of a row for itself
// ("Blocks: weights of 4 to 8 bits").
struct QuantizeArgs {
  const void* x = nullptr;  // T [num_rows, ldx]
  int64_t ldx = 0;
  int32_t num_rows = 0;
  int32_t width = 0;
  int8_t* out = nullptr;  // [num_rows, ldo]
  int64_t ldo = 0;
  // [num_rows]; of blocks [num_rows, width / 32, 2]: the scale, and the scale times the sum.
  float* scales = nullptr;
};

// A layer's KV memory: blocks of the pool, and blocks that belong only to the pass.
struct KvPointers {
  uint8_t* pool = nullptr;
  uint8_t* own = nullptr;  // the blocks with ids from num_pool_blocks on
  int32_t num_pool_blocks = 0;
  int64_t block_bytes = 0;  // of one layer: all heads
  int64_t head_bytes = 0;   // K and V of one head; K comes first
};

// Norms and rotates the heads of each token, and rounds them. Stores q in a matrix, and k and v in
// the token's slot of its KV block.
struct StoreHeadsArgs {
  const float* qkv = nullptr;     // [num_tokens, (num_heads + 2 num_kv_heads) * head_dim]
  const float* q_norm = nullptr;  // [head_dim] or null
  const float* k_norm = nullptr;
  float eps = 0.0f;
  const float* cos = nullptr;  // [positions, rotary_dim / 2]; null: no rotation
  const float* sin = nullptr;
  const int32_t* positions = nullptr;       // [num_tokens]: of the keys in their sequences
  const int32_t* rope_positions = nullptr;  // [num_tokens]: of the angles
  const int32_t* blocks = nullptr;  // [num_tokens]: the block that holds the token's position
  int32_t num_tokens = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t rotary_dim = 0;
  void* q = nullptr;  // T [num_tokens, ldq]
  int64_t ldq = 0;
  KvPointers kv;
};

// Copies the first `slots` slots of a block to another block, for all heads of a layer.
struct SlotCopy {
  int32_t from = 0, to = 0;
  int32_t slots = 0;  // kKvBlockTokens copies the whole block
};
struct CopySlotsArgs {
  const SlotCopy* copies = nullptr;  // [num_copies]
  int32_t num_copies = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim_padded = 0;
  int32_t num_layers = 1;
  int64_t layer_bytes = 0;  // from a layer's pool to that of the next layer
  KvPointers kv;            // of the first layer
};

// Up to tile_rows query rows of one sequence, for each KV head. Row r of a sequence is token r /
// group and query head r % group of the KV head, where group = num_heads / num_kv_heads.
struct AttentionTile {
  int32_t first_token = 0;  // index in the batch of the sequence's first token
  int32_t num_tokens = 0;   // the sequence's tokens in the batch
  int32_t begin = 0;        // the position of the first of these tokens
  int32_t table = 0;        // index in `tables` of the sequence's block table
  int32_t first_row = 0;    // a multiple of tile_rows
  int32_t num_keys = 0;     // no token of the tile sees a key from this one on
};
inline constexpr int32_t kAllKeys = 1 << 30;
inline constexpr int32_t kAttentionRows = 16;  // of a warp
// The rows of a wide tile of AttentionKernel.
inline constexpr int32_t kFourWarpRows = 4 * kAttentionRows;
// The most blocks with tiles of kAttentionRows rows that an H200 ends sooner than fewer blocks with
// more rows each: two for each of its multiprocessors at the same time, and as many behind them.
inline constexpr int64_t kNarrowBlocks = 528;
// The rows of a wide tile: those of eight warps where attention_wide.h has a kernel, else of four.
inline constexpr int32_t kWideAttentionRows = 8 * kAttentionRows;
inline int32_t WideRows(DType dtype, int32_t head_dim_padded) {
  const bool compiled = dtype == DType::kBf16 && (head_dim_padded == 64 || head_dim_padded == 128);
  return compiled ? kWideAttentionRows : kFourWarpRows;
}
// The rows of a tile: kAttentionRows or `wide_rows`. `most_rows` are the most that a sequence of
// the batch has. `narrow_blocks` are all tiles of kAttentionRows rows, times KV heads.
inline int32_t AttentionTileRows(int32_t wide_rows, int32_t most_rows, int64_t narrow_blocks) {
  const bool narrow = most_rows <= kAttentionRows || narrow_blocks <= kNarrowBlocks;
  return narrow ? kAttentionRows : wide_rows;
}

// Terms of scores that depend on the distance of a row's token from a key (docs/numerics.md,
// "Attention"): the products of the heads of q and k with the row of a table for this distance.
struct RelativeTerms {
  // [2 * num_positions - 1]: the row of distance d at d + num_positions - 1. Null: no terms.
  const int32_t* rows = nullptr;
  int32_t num_positions = 0;
  int32_t num_rows = 0;
  int32_t num_tokens = 0;        // of the batch
  const float* terms = nullptr;  // [heads of q, then heads of k][num_tokens][num_rows]
};

// Terms of scores that depend on the head and the distance of a key from the row's token alone.
struct DistanceTerms {
  // [heads, stride]: the term of the distance d (the key's position less the token's) at
  // d + num_positions - 1. Null: no terms.
  const float* terms = nullptr;
  int64_t stride = 0;
  int32_t num_positions = 0;
};

// Rows that share their first keys walk them together, in a launch of its own. It ends with partial
// sums, from which each tile of the launch behind it goes on:
//
//   keys:   | shared prefix                | own keys of a
//           |   one walk: rows of a and b  | own keys of b
struct SharedPrefix {
  int32_t num_keys = 0;   // whole steps that the tile's rows have walked; 0: none
  int32_t first_row = 0;  // of the tile's sequence, among the rows of all tiles of that launch
};
struct SharedWalks {
  const SharedPrefix* of_tiles = nullptr;  // [num_tiles]; null: there are none
  const float* partial = nullptr;          // AttentionArgs::partial of that launch
  int32_t tile_rows = 0;                   // of that launch, whose num_segments is the same
};

// The attention walk (docs/numerics.md, "Attention"), segment by segment. If there is only one
// segment, `out` is written directly; otherwise MergeSegments makes it from the partial sums.
struct AttentionArgs {
  const AttentionTile* tiles = nullptr;  // [num_tiles]
  const int32_t* tables = nullptr;       // block ids
  int32_t num_tiles = 0;
  int32_t tile_rows = 0;     // AttentionTileRows
  int32_t num_segments = 0;  // of the longest row
  // A launch over shared prefixes: AttentionTile::first_token is an index in this list of tokens,
  // and the partial sums are the result. Null: any other launch.
  const int32_t* tokens = nullptr;
  SharedWalks shared;
  // The keys that a row sees on either side of its own. keys_before = -1: all; keys_after: at most
  // kAllKeys.
  int32_t keys_before = -1;
  int32_t keys_after = 0;
  // Bits of keys, [tokens, visible_words]: a row sees those of these keys that are set. Null: all.
  const uint32_t* visible = nullptr;
  int32_t visible_words = 0;
  // REQUIRES: all keys of a sequence are in the batch, and each head has its own.
  RelativeTerms relative;
  DistanceTerms distances;       // REQUIRES: each head has its own keys
  const float* sinks = nullptr;  // [num_heads]: AttentionRow::sink. Null: there are none
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t head_dim_padded = 0;
  float scale = 1.0f;
  float soft_cap = 0.0f;    // AttentionCall::soft_cap
  const void* q = nullptr;  // T [tokens, ldq]
  int64_t ldq = 0;
  void* out = nullptr;  // T [tokens, ldo]
  int64_t ldo = 0;
  // [tiles, segments, kv heads, tile_rows, 2 + head_dim]: maximum, sum, weighted sum of values.
  float* partial = nullptr;
  KvPointers kv;
};

// The function of an MLP's gate, or of a head. kClampedSwiglu is a function of the gate and of what
// it gates (Activation::kClampedSwiglu): of gated products and sums alone.
enum class Gate : uint8_t { kSilu, kGelu, kGeluTanh, kRelu, kClampedSwiglu };

// x = x / divisor, then SoftCap of it.
struct FinishLogitsArgs {
  float* x = nullptr;  // [num_logits]
  int64_t num_logits = 0;
  float divisor = 1.0f;
  float cap = 0.0f;  // 0: none
};

// out = gate(x), rounded to T, row by row.
struct ActivateArgs {
  Gate gate = Gate::kRelu;
  const float* x = nullptr;  // [num_rows, width]
  int32_t num_rows = 0;
  int32_t width = 0;
  void* out = nullptr;  // T [num_rows, ldo]
  int64_t ldo = 0;
};

// out = gate(x) * x behind it by `up` elements, rounded to T, row by row (Gated).
struct GateSumsArgs {
  Gate gate = Gate::kSilu;
  const float* x = nullptr;  // [num_rows, ldx]
  int64_t ldx = 0;
  int32_t up = 0;
  int32_t num_rows = 0;
  int32_t width = 0;
  void* out = nullptr;  // T [num_rows, ldo]
  int64_t ldo = 0;
};

// The largest element of each row, as Kernels::FindLargest has it, or the token that is drawn from
// the row.
struct RowLargest {
  int32_t index = 0;         // that, or the token
  int32_t finite = 0;        // 1: the row has no NaN, no +inf, and an element above -inf
  float value = 0.0f;        // the largest element
  int32_t left_to_host = 0;  // 1: the host has to draw the token
};
// The largest of a part of a row. None: index < 0.
struct PartLargest {
  float value = 0.0f;
  int32_t index = 0;
  int32_t finite = 0;  // 1: the part has no NaN and no +inf
};
// With several parts, MergeLargest makes `out` from the parts.
struct FindLargestArgs {
  const float* x = nullptr;  // [num_rows, ldx]
  int64_t ldx = 0;
  int32_t num_rows = 0;
  int32_t width = 0;
  int32_t num_parts = 1;         // of each row
  int32_t part_width = 0;        // of all but the last; set by FindLargestLaunch
  PartLargest* parts = nullptr;  // [num_rows, num_parts]; null if there is one
  RowLargest* out = nullptr;     // [num_rows]
};
// The number of parts with which many blocks read each row.
inline int32_t LargestParts(int64_t width) {
  constexpr int32_t kPartWidth = 4096;
  return static_cast<int32_t>((width + kPartWidth - 1) / kPartWidth);
}

// The experts of each token (docs/numerics.md, "Experts"). A slot is one token at one of its
// experts: slot token * per_token + i belongs to the token's expert number i, by ascending number.
struct ChooseExpertsArgs {
  const float* logits = nullptr;  // [num_tokens, ldl]: the router's
  int32_t ldl = 0;
  int32_t num_tokens = 0;
  int32_t num_experts = 0;  // at most kMaxExperts
  int32_t per_token = 0;    // at most kMaxExpertsPerToken
  bool norm_weights = false;
  int32_t* experts = nullptr;  // [num_tokens, per_token]
  float* weights = nullptr;    // [num_tokens, per_token]
  // The weight of the expert that every token goes through, the sigmoid of a logit of its own.
  // Null: there is no such expert.
  float* shared_weights = nullptr;  // [num_tokens]
  int32_t shared_logit = 0;         // column of logits
};
inline constexpr int32_t kMaxExperts = 1024;
inline constexpr int32_t kMaxExpertsPerToken = 32;

// The slots of each expert, ascending.
struct ListSlotsArgs {
  const int32_t* experts = nullptr;  // [num_slots], of ChooseExperts
  int32_t num_slots = 0;
  int32_t num_experts = 0;
  int32_t* counts = nullptr;  // [num_experts]
  int32_t* slots = nullptr;   // [num_experts, capacity]
  int32_t capacity = 0;       // at least the number of tokens
};

// x[token] = x[token] + weight * out, over the token's slots in order, then for the shared expert.
struct SumExpertsArgs {
  const float* out = nullptr;             // [num_tokens * per_token, stride]
  const float* weights = nullptr;         // [num_tokens, per_token]
  const float* shared = nullptr;          // [num_tokens, stride]; null: there is none
  const float* shared_weights = nullptr;  // [num_tokens]
  int32_t num_tokens = 0;
  int32_t per_token = 0;
  int32_t width = 0;   // of a row's columns
  int64_t stride = 0;  // of rows of out, of shared and of x
  float* x = nullptr;  // [num_tokens, stride]
};

// The rows of each expert's own product, where the weights are those of many experts. Row r of
// expert e is slot slots[e, r]: it reads row slot / slots_per_row of a, and writes row slot of out.
struct GemmGroups {
  const int32_t* counts = nullptr;  // [groups]: rows
  const int32_t* slots = nullptr;   // [groups, capacity]
  int32_t capacity = 0;
  int32_t slots_per_row = 1;
  int32_t first_group = 0;  // the launch has groups [first_group, first_group + num_groups)
  int32_t num_groups = 0;
  int32_t panels = 0;  // of each group, in w; w_scales, places and bias have as many columns
};

// A row of the batch in linear layers: its tokens, and the slots of its states (ForwardState).
struct StateRow {
  static constexpr int kSnapshots = 8;
  struct Snapshot {
    int32_t slot = -1;   // -1: none
    int32_t tokens = 0;  // of the row, before the state
  };

  int32_t first_token = 0;
  int32_t num_tokens = 0;
  int32_t from = -1;  // -1: the row begins its sequence
  int32_t to = -1;    // -1: the state is not kept
  Snapshot snapshots[kSnapshots] = {};
};

// The gates of the delta rule, of the sums for b and a: [num_tokens, num_heads] of DeltaGates.
struct DeltaGatesArgs {
  const float* x = nullptr;  // [num_tokens, ldx]: b [num_heads], then a [num_heads]
  int64_t ldx = 0;
  const double* rates = nullptr;   // [num_heads]: exp(A_log)
  const float* dt_bias = nullptr;  // [num_heads]
  int32_t num_tokens = 0;
  int32_t num_heads = 0;
  void* gates = nullptr;
};
inline constexpr int64_t kDeltaGatesBytes = 16;

// The convolution, and SiLU, over the tokens of a tile: [first, first + count) of a row.
struct ConvTile {
  int32_t row = 0;
  int32_t first = 0, count = 0;
};
inline constexpr int32_t kConvTileTokens = 32;
struct ConvArgs {
  const float* x = nullptr;  // [tokens, ldx]: q, k, v
  int64_t ldx = 0;
  const StateRow* rows = nullptr;   // [num_rows]
  const ConvTile* tiles = nullptr;  // [num_tiles]
  int32_t num_rows = 0;
  int32_t num_tiles = 0;
  const float* weight = nullptr;  // [kConvWidth, width]
  int32_t width = 0;              // of q, k and v
  int32_t k_width = 0;            // of q, and of k
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  float* states = nullptr;  // of the layer's convolution, in slot 0
  int64_t slot_floats = 0;  // from a slot to the next
  float* out = nullptr;     // [tokens, width]; not x
};

// The norms of the heads of q and k, with one gain each.
struct ScaleLinearHeadsArgs {
  float* x = nullptr;  // [num_tokens, ldx]: q [num_k_heads, k_dim], then k
  int64_t ldx = 0;
  int32_t num_tokens = 0;
  int32_t num_k_heads = 0;
  int32_t k_dim = 0;
  float eps = 0.0f;
  float q_gain = 1.0f, k_gain = 1.0f;
};

// The delta rule, in place of v (DeltaCall).
struct DeltaArgs {
  float* x = nullptr;  // [tokens, ldx]: q, k, v. ldx and the addresses are multiples of 16 bytes.
  int64_t ldx = 0;
  const void* gates = nullptr;     // of DeltaGatesArgs
  const StateRow* rows = nullptr;  // [num_rows]
  int32_t num_rows = 0;
  int32_t num_k_heads = 0;
  int32_t num_v_heads = 0;
  int32_t k_dim = 0;  // at most kMaxDeltaDim
  int32_t v_dim = 0;
  bool tiled_v_heads = false;  // LinearLayers::tiled_v_heads
  float* states = nullptr;     // of the layer's delta rule, in slot 0
  int64_t slot_floats = 0;
};

// out = silu(z) * RMSNorm(v), head by head, rounded to T.
struct GatedNormArgs {
  const float* v = nullptr;  // [num_tokens, ldv]
  int64_t ldv = 0;
  const float* z = nullptr;  // [num_tokens, ldz]
  int64_t ldz = 0;
  const float* weight = nullptr;  // [v_dim]
  float eps = 0.0f;
  int32_t num_tokens = 0;
  int32_t num_heads = 0;
  int32_t v_dim = 0;
  void* out = nullptr;  // T [num_tokens, ldo]
  int64_t ldo = 0;
};

// x = x * sigmoid(gate), rounded to T.
struct AttentionGateArgs {
  const float* gate = nullptr;  // [num_rows, width]
  int32_t num_rows = 0;
  int32_t width = 0;
  void* x = nullptr;  // T [num_rows, ldx]
  int64_t ldx = 0;
};

// The most shared memory that a block has on GPUs of sm_90, and on those of sm_89.
inline constexpr int64_t kSharedBytes = 232448, kLeastSharedBytes = 101376;

// Tiles of a product (gemm_tiles.h), ascending, and those of persistent blocks.
enum class TileSize : uint8_t {
  kFew8,
  kFew16,
  kFew32,
  kDeep32,
  kMiddle,
  kDeep64,
  kLarge,
  kHuge,
  kPersistentLarge,
  kPersistentHuge
};
inline constexpr int kTileSizes = 10;

// kStore: out = sum; kAdd: out = out + sum; kGated: out = gate(sum) * sum of up, rounded.
enum class GemmOutput : uint8_t { kStore, kAdd, kGated };

// The sums are a · w^T [+ bias]; w lies in the panels of a PackedWeight.
struct GemmArgs {
  const void* a = nullptr;  // rows of w's type [m, lda words of 32 bits]
  int64_t lda = 0;
  const float* a_scales = nullptr;     // of int8 rows, and of blocks: QuantizeArgs::scales
  const void* w = nullptr;             // [n / 16 panels][words][16 columns] words
  const float* w_scales = nullptr;     // [n], of int8
  const PanelPlace* places = nullptr;  // [n / 16], of blocks: the panels in w
  const float* bias = nullptr;         // [n] or null
  const int32_t* panels = nullptr;     // [columns / 16] the panels to multiply; null: 0, 1, ...
  int32_t m = 0;
  int32_t columns = 0;       // of the output
  int32_t words = 0;         // of a row, a multiple of 16
  int32_t up_panel = 0;      // gated: the panel of up that belongs to gate's panel 0
  int32_t column_tiles = 0;  // of the launch's tile
  Gate gate = Gate::kSilu;
  GemmGroups groups;    // of a grouped product, whose m is the most that a group can have
  void* out = nullptr;  // [m, ldo]: f32, gated: T
  int64_t ldo = 0;
};

}  // namespace skein::cuda
