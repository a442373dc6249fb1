#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "kernels/kv_layout.h"
#include "kernels/linear_shape.h"
#include "kernels/packed_weight.h"
#include "kernels/row_tiles.h"

namespace skein {

// Instruction sets in descending order of preference.
// kAvxVnni is AVX2 with an instruction for integer products. kAvx512Bf16Fma is kAvx512Bf16 with
// FMAs in place of vdpbf16ps, with the same bits; which of the two is better depends on the
// processor (IsasHere).
enum class Isa { kAmx, kAvx512Bf16, kAvx512Bf16Fma, kAvx512, kAvxVnni, kAvx2, kScalar };
const char* NameOf(Isa isa);

// Classes of instruction sets that give the same bits. For products and attention in bf16,
// kAvx512Bf16 and kAvx512Bf16Fma form a class, kAmx is one of its own, and all others form the
// class kFma. Products with int8 weights give the same bits in all classes, and so does attention
// over keys and values in int8.
enum class NumericClass { kFma, kBf16, kAmx };

// The class of `isa` for products and attention in `dtype`.
inline NumericClass NumericClassOf(Isa isa, DType dtype) {
  if (dtype != DType::kBf16) return NumericClass::kFma;
  if (isa == Isa::kAmx) return NumericClass::kAmx;
  const bool bf16 = isa == Isa::kAvx512Bf16 || isa == Isa::kAvx512Bf16Fma;
  return bf16 ? NumericClass::kBf16 : NumericClass::kFma;
}

// 32 int8 elements of a row that is multiplied by a matrix of blocks.
struct RowBlock {
  float scale = 0.0f;
  float scaled_sum = 0.0f;       // scale * sum, rounded
  int32_t low_sum = 0, sum = 0;  // of the first 16 elements q and of all
};

// From this number of rows on, the matrix unit multiplies blocks if it is the instruction set.
inline constexpr int32_t kAmxBlockRows = 16;

// The function that an MLP, a pooler or a head applies to each element (docs/numerics.md, "Rows").
enum class Activation {
  kNone,
  kRelu,
  kGelu,
  kGeluTanh,
  kTanh,
  kSilu,
  // gpt-oss's clamped SwiGLU, in gated products alone: with gate at most 7 and up in [-7, 7], it is
  // gate * sigmoid(1.702 * gate) * (up + 1).
  kClampedSwiglu,
};

// out[m, n] = a[m, k] · w[n, k]^T over columns [n_begin, n_end), in f32 sums. With int8 weights the
// sums are int32, multiplied by the scales of row and column. With blocks, the sums within a block
// are int32 and scaled, and f32 sums add the blocks.
struct GemmCall {
  const void* a = nullptr;  // [m, k] in w->dtype(), row stride lda elements, any alignment
  int64_t lda = 0;
  const float* a_scales = nullptr;  // [m] for int8 (by Quantize), otherwise null
  // [m, k / 32] with row stride lda / 32 if w has blocks (by QuantizeBlocks), otherwise null.
  const RowBlock* a_blocks = nullptr;
  int32_t m = 0;  // >= 1
  const PackedWeight* w = nullptr;
  int32_t n_begin = 0;          // multiple of kPanelCols
  int32_t n_end = 0;            // multiple of kPanelCols, or w->n()
  const float* bias = nullptr;  // [w->n()] or null; added to the finished sum
  bool add_to_out = false;  // if set: out = out + (sum + bias), in f32; otherwise out = sum + bias
  // If positive, the product is gated; a multiple of kPanelCols. Then out[m, n] = activation(gate)
  // * up, or kClampedSwiglu of both, where gate is sum + bias of column n, and up is sum + bias of
  // column n + up_begin. Needs n_end <= up_begin and no add_to_out.
  int32_t up_begin = 0;
  // Applied to the gate; without a gate, to sum + bias, which needs no add_to_out.
  Activation activation = Activation::kNone;
  void* out = nullptr;            // [m, n] of out_dtype, row stride ldo elements
  int64_t ldo = 0;                // >= n_end - out_begin
  int32_t out_begin = 0;          // the column of w that is out's first column; <= n_begin
  DType out_dtype = DType::kF32;  // kBf16 is rounded from the finished f32
  // If a_tiles is set, `a` lies in tiles (kernels/row_tiles.h) and not in rows; out_tiles says the
  // same of `out`. The first row begins a tile, and lda or ldo is the width of the matrix. a_tiles
  // needs kAmx and bf16 weights; lda is w->k_padded(), and elements from k on must be finite.
  // out_tiles needs bf16.
  bool a_tiles = false;
  bool out_tiles = false;
};

// The keys [first, end). A row sees those that exist. The default is all keys.
struct KeyWindow {
  int32_t first = 0;
  int32_t end = std::numeric_limits<int32_t>::max();
};

// One query row of an attention tile: one position of one query head. If a block of keys holds a
// key that the row sees, the values of the block's hidden keys must be finite.
struct AttentionRow {
  const void* q = nullptr;               // [head_dim] in the compute type
  void* out = nullptr;                   // [head_dim] in the compute type; may be q
  int32_t num_keys = 0;                  // keys [0, num_keys) exist; >= 1
  int32_t num_blocks = 0;                // length of the block table; covers num_keys
  const int32_t* block_table = nullptr;  // of the row's sequence: ids of KV blocks
  KeyWindow window = {};                 // at least one of its keys is below num_keys
  // A bit for every key, 32 bits per word from the lowest bit on. A 0 hides a key of the window.
  // The bits of keys outside the window are 0, and the first key of the window is visible. Null: no
  // key is hidden.
  const uint32_t* visible = nullptr;  // [num_keys / 32, rounded up]
  // A term of every key's score, added to q · K before the scale. It is finite for keys that are
  // hidden or do not exist. Null: no terms. All rows of a call have terms, or none has.
  const float* terms = nullptr;  // [num_keys, rounded up to whole blocks]
  // The score, already scaled, of a key without a value (an attention sink; Xiao et al. 2023,
  // "Efficient Streaming Language Models with Attention Sinks", section 3.2): its weight is only
  // added to the sum of the others. -inf: there is none.
  float sink = -std::numeric_limits<float>::infinity();
};

// The number of keys of one step of the attention walk.
inline int32_t KeysPerStep(Isa isa, DType dtype) {
  return NumericClassOf(isa, dtype) == NumericClass::kFma ? kKeysPerStep : kKeysPerAmxStep;
}

// Up to kMaxQueryRows rows under one KV head. Rows of one sequence are adjacent and have the same
// table pointer. Adjacent rows of different sequences that share blocks walk these blocks together,
// as long as both rows see whole steps of them. Shared keys and values are then read once: in bf16
// on AMX and AVX512-BF16 for all rows, otherwise for 16 rows at a time. Each row has the bits that
// it would have alone.
struct AttentionCall {
  std::span<const AttentionRow> rows;
  const std::byte* kv = nullptr;  // the part of block 0 of one layer and KV head; see KvLayout
  // The KV head's part of the block with the id layout->num_blocks. This block and those with
  // larger ids belong to the caller. Null if there are none.
  const std::byte* own_kv = nullptr;
  const KvLayout* layout = nullptr;  // head_dim <= kMaxHeadDim
  float scale = 1.0f;
  float soft_cap = 0.0f;  // scaled scores become soft_cap * tanh(score / soft_cap); 0: none
  // The distance of pieces in the rows' q and out (kernels/row_tiles.h). Must be kRowPiece except
  // for bf16 on kAmx.
  int64_t piece_stride = kRowPiece;
  // The compute type, if the layout's type is kInt8; otherwise the layout's type is the compute
  // type.
  DType dtype = DType::kF32;
};

// The number of elements of a group of a row, counted from element 0. Some functions below give a
// result for each group.
inline constexpr int32_t kRowGroup = 256;
inline constexpr int32_t NumRowGroups(int32_t n) { return (n + kRowGroup - 1) / kRowGroup; }

// The heads of one token of q or k. Each head is normed (as by RmsNorm, if there is a weight), then
// its pairs (i, i + rotary_dim / 2) are rotated (if there are angles), and the result is rounded.
struct RotateCall {
  const float* x = nullptr;     // [num_heads, head_dim]
  const float* norm = nullptr;  // [head_dim] or null
  float eps = 0.0f;
  const float* cos = nullptr;  // [rotary_dim / 2] or null, like sin
  const float* sin = nullptr;  // [rotary_dim / 2]
  int32_t num_heads = 0;
  int32_t head_dim = 0;  // even, <= kMaxHeadDim
  int32_t rotary_dim =
      0;  // even, <= head_dim: elements from this index on keep their angle; 0: head_dim
  void* out = nullptr;  // [num_heads, head_dim] in dtype; not x
  DType dtype = DType::kF32;
  // The distance of pieces in out (kernels/row_tiles.h). Unless it is kRowPiece, head_dim and
  // rotary_dim must be multiples of kRowPiece.
  int64_t piece_stride = kRowPiece;
};

// A causal convolution of width 4 over each of n columns, and SiLU, over consecutive tokens of one
// sequence:
//
//   x[t, i] = silu(sum over j in [0, 4) of weight[j, i] * x[t - 3 + j, i]), of the old x
struct ConvCall {
  float* x = nullptr;  // [num_tokens, n], row stride ldx elements, in place
  int64_t ldx = 0;
  int32_t num_tokens = 0;
  int32_t n = 0;
  const float* weight = nullptr;  // [4, n], row stride ldw elements
  int64_t ldw = 0;
  // [3, n]: before, the old x of the three previous tokens; after, that of the last three tokens.
  float* state = nullptr;
};

// The gated delta rule over consecutive tokens of one sequence, for kDeltaCols columns of one
// head's state (Yang et al. 2024, "Gated Delta Networks", equation 10). For each token:
//
//   u = beta * (v - decay * state^T k)
//   state = decay * state + k u^T
//   v = state^T q
//
// The operands of token t are row t of each pointer. All have row stride ld.
struct DeltaCall {
  float* state = nullptr;        // [k_dim, kDeltaCols], in place
  const float* q = nullptr;      // [num_tokens, k_dim]
  const float* k = nullptr;      // [num_tokens, k_dim]
  float* v = nullptr;            // [num_tokens, kDeltaCols], in place
  const float* decay = nullptr;  // [num_tokens, 1]
  const float* beta = nullptr;   // [num_tokens, 1]
  int64_t ld = 0;
  int32_t num_tokens = 0;
  int32_t k_dim = 0;  // a multiple of 4
};

// The numeric operations on one thread. Each call is at most one ticket. The caller divides an
// operator into rows, columns and heads, and never divides a sum, so the bits do not depend on the
// division. Thread-safe: no state. Each call sets the floating-point mode (base/fp_mode.h) while it
// runs.
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual Isa isa() const = 0;

  virtual void Gemm(const GemmCall& call) const = 0;

  // softmax((q · K^T + terms) * scale, sink) · V by the attention walk (docs/numerics.md), which is
  // the only one. With a soft cap, softmax is of the capped scores.
  virtual void Attention(const AttentionCall& call) const = 0;

  // out[i] = x[i] * rsqrt(mean(x^2) + eps) * weight[i]; `out` has the type out_dtype and the
  // distance piece_stride of pieces (kernels/row_tiles.h). `out` may be x for f32.
  virtual void RmsNorm(const float* x, const float* weight, float eps, int32_t n, void* out,
                       DType out_dtype, int64_t piece_stride) const = 0;

  // out[i] = (x[i] - mean) / sqrt(variance + eps) * weight[i] + bias[i]; `out` may be x for f32.
  virtual void LayerNorm(const float* x, const float* weight, const float* bias, float eps,
                         int32_t n, void* out, DType out_dtype) const = 0;

  // out[i] = activation(x[i]); `out` has the type out_dtype, and may be x for f32.
  virtual void Activate(Activation activation, const float* x, int32_t n, void* out,
                        DType out_dtype) const = 0;

  // Norms and rotates the heads of one token.
  virtual void Rotate(const RotateCall& call) const = 0;

  // out[i] = silu(gate[i]) * up[i]; `out` has the type out_dtype.
  virtual void SiluMul(const float* gate, const float* up, int32_t n, void* out,
                       DType out_dtype) const = 0;

  // x[i] = x[i] * sigmoid(gate[i]), rounded; x [n] of dtype kF32 or kBf16.
  virtual void SigmoidMul(const float* gate, int32_t n, void* x, DType dtype) const = 0;

  // x[i] = cap * tanh(x[i] / cap), in place; cap > 0.
  virtual void SoftCap(float* x, int32_t n, float cap) const = 0;

  virtual void Conv(const ConvCall& call) const = 0;
  virtual void Delta(const DeltaCall& call) const = 0;

  // Rounds x [n] to the given type.
  virtual void Convert(const float* x, int32_t n, void* out, DType out_dtype) const = 0;

  // Rounds a row x [n] of dtype kF32 or kBf16 to int8, out [n]; returns its scale.
  virtual float Quantize(const void* x, DType dtype, int32_t n, int8_t* out) const = 0;

  // Rounds each 32 elements of a row x [n] of dtype kF32 or kBf16 to int8, with a scale for each 32
  // elements: out [n], blocks [n / 32]. n is a multiple of 32.
  virtual void QuantizeBlocks(const void* x, DType dtype, int32_t n, int8_t* out,
                              RowBlock* blocks) const = 0;

  // Finds the largest element of x [n] and the lowest index that has it. If group_max
  // [NumRowGroups(n)] is not null, also writes the largest element of each group.
  struct Largest {
    float max;
    int32_t argmax;
    bool finite;  // no NaN, no +inf, and at least one element above -inf
  };
  virtual Largest FindLargest(const float* x, int32_t n, float* group_max) const = 0;

  // log(sum(exp(x))). REQUIRES: `max` is FindLargest's result for x, and finite.
  virtual float LogSumExp(const float* x, float max, int32_t n) const = 0;

  // out[i] = exp(x[i] - shift).
  virtual void ExpShifted(const float* x, float shift, int32_t n, float* out) const = 0;

  // weights[i] = exp((x[i] - max) / temperature); `weights` may be x. Writes the sum of each group
  // to group_sums [NumRowGroups(n)]. REQUIRES: no NaN, a finite max with no element above it, and a
  // temperature that is a normal number above 0.
  virtual void Weigh(const float* x, float max, float temperature, int32_t n, float* weights,
                     double* group_sums) const = 0;

  // Writes the indices of the elements that are at least `floor`, ascending, to `ids` [n]; returns
  // their number. group_max is FindLargest's result for x, with which groups can be skipped, or
  // null. REQUIRES: no NaN.
  virtual int32_t FindAtLeast(const float* x, int32_t n, float floor, const float* group_max,
                              int32_t* ids) const = 0;

  // The number of elements of x [n] that are larger than x[index], or equal to it with a lower
  // index. REQUIRES: no NaN.
  virtual int32_t RankOf(const float* x, int32_t n, int32_t index) const = 0;
};

// The kernels of one instruction set; kUnsupported if this machine lacks it.
Result<std::unique_ptr<Kernels>> MakeKernels(Isa isa);

// The instruction sets of this machine, best first. Measures once which of kAvx512Bf16 and
// kAvx512Bf16Fma is better, within 0.3 ms.
std::vector<Isa> IsasHere();

// The best instruction set of this machine, or the one that SKEIN_FORCE_ISA names (amx,
// avx512-bf16, avx512-bf16-fma, avx512, avx-vnni, avx2, scalar). kInvalidArgument for an unknown
// name, kUnsupported for a set that this machine lacks.
Result<Isa> SelectIsa();

}  // namespace skein
