#pragma once

// The kernels of linear layers (docs/numerics.md, "Linear layers"). Rows of the batch carry a state
// of the layer from token to token; a state begins in a slot, and is kept in others (StateRow).

#include <cmath>
#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"
#include "cuda/kernels/rows.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

// The gates of a token and a v head, which are copied at once.
struct alignas(16) DeltaGates {
  float decay, beta, unused[2];
};

__device__ __forceinline__ double Softplus(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

// A thread for each token and head.
template <typename X>
__global__ void DeltaGatesKernel(DeltaGatesArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kRowThreads + threadIdx.x;
  const int64_t token = index / a.num_heads;
  const int head = static_cast<int>(index % a.num_heads);
  if (token >= a.num_tokens) return;
  const X* of_token = a.x + token * a.ldx + head;
  const double b = of_token[0], of_a = of_token[a.num_heads];
  const double step = Softplus(of_a + static_cast<double>(a.dt_bias[head]));
  DeltaGates gates = {};
  gates.beta = static_cast<float>(1 / (1 + exp(-b)));
  gates.decay = static_cast<float>(exp(-a.rates[head] * step));
  static_cast<DeltaGates*>(a.gates)[index] = gates;
}

// The old elements of a column of q, k or v before a token: those of the row itself, and before
// them those of its first state.
struct ConvColumn {
  __device__ __forceinline__ ConvColumn(const ConvArgs& a, const StateRow& state_row, int of_column)
      : x(a.x + static_cast<int64_t>(state_row.first_token) * a.ldx + of_column), ldx(a.ldx) {
    const int qk_width = 2 * a.k_width;
    const int head = of_column < qk_width ? a.k_dim : a.v_dim;
    const int in_part = of_column < qk_width ? of_column : of_column - qk_width;
    in_head = in_part % head;
    head_width = head;
    state_offset = static_cast<int64_t>(kConvWidth - 1) * (of_column - in_head);
    from = state_row.from < 0 ? nullptr
                              : a.states + state_row.from * a.slot_floats + state_offset + in_head;
  }

  // The element of token `index` of the row, -3 or more.
  __device__ __forceinline__ float At(int index) const {
    if (index >= 0) return x[index * ldx];
    return from == nullptr ? 0.0f : from[(kConvWidth - 1 + index) * head_width];
  }

  const float* x;
  int64_t ldx;
  int in_head, head_width;
  int64_t state_offset;  // of the head
  const float* from;     // null: zeros
};

// Grid: columns / kRowThreads, tiles.
template <typename X>
__global__ void ConvKernel(ConvArgs a) {
  constexpr int kLoads = 8;  // in flight
  LetNextKernelStart();
  const ConvTile tile = a.tiles[blockIdx.y];
  const StateRow& row = a.rows[tile.row];
  WaitForPreviousKernel();  // the integers are there before the pass's first kernel
  const int column = static_cast<int>(blockIdx.x) * kRowThreads + static_cast<int>(threadIdx.x);
  if (column >= a.width) return;
  const ConvColumn of(a, row, column);
  X weight[kConvWidth], old[kConvWidth];
#pragma unroll
  for (int j = 0; j < kConvWidth; ++j) weight[j] = a.weight[j * a.width + column];
#pragma unroll
  for (int j = 0; j + 1 < kConvWidth; ++j) {
    old[j + 1] = of.At(tile.first + j + 1 - kConvWidth);
  }
  X* out = a.out + static_cast<int64_t>(row.first_token + tile.first) * a.width + column;
#pragma unroll 1
  for (int first = 0; first < tile.count; first += kLoads) {
    X loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      loaded[i] = first + i < tile.count ? of.At(tile.first + first + i) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (first + i >= tile.count) break;
#pragma unroll
      for (int j = 0; j + 1 < kConvWidth; ++j) old[j] = old[j + 1];
      old[kConvWidth - 1] = loaded[i];
      X sum = old[0] * weight[0];
#pragma unroll
      for (int j = 1; j < kConvWidth; ++j) sum = fmaf(old[j], weight[j], sum);
      out[(first + i) * static_cast<int64_t>(a.width)] = Silu(sum);
    }
  }
}

// Keeps the states of the convolution behind ConvKernel. Grid: columns / kRowThreads, rows.
template <typename X>
__global__ void StoreConvStatesKernel(ConvArgs a) {
  LetNextKernelStart();
  const StateRow& row = a.rows[blockIdx.y];
  WaitForPreviousKernel();  // the integers are there before the pass's first kernel
  const int column = static_cast<int>(blockIdx.x) * kRowThreads + static_cast<int>(threadIdx.x);
  if (column >= a.width) return;
  const ConvColumn of(a, row, column);
  // The elements before token `end` of the row.
  const auto store = [&](int slot, int end) {
    X last[kConvWidth - 1];  // the slot may be the one that the row starts from
#pragma unroll
    for (int j = 0; j + 1 < kConvWidth; ++j) last[j] = of.At(end + j + 1 - kConvWidth);
    X* to = a.states + slot * a.slot_floats + of.state_offset + of.in_head;
#pragma unroll
    for (int j = 0; j + 1 < kConvWidth; ++j) to[j * of.head_width] = last[j];
  };
#pragma unroll 1
  for (const StateRow::Snapshot& snapshot : row.snapshots) {
    if (snapshot.slot >= 0) store(snapshot.slot, snapshot.tokens);
  }
  if (row.to >= 0) store(row.to, row.num_tokens);
}

// One over the root of the mean square of a head, in 16 lanes.
__device__ __forceinline__ float ScaleOfHead(const float* head, int width, float eps, int lane) {
  float sum = 0.0f;
  for (int i = lane; i < width; i += kRowLanes) sum = fmaf(head[i], head[i], sum);
  return 1.0f / sqrtf(SumOfRowLanes(sum) / static_cast<float>(width) + eps);
}

// Gives each head of q and k its length, in place. 16 lanes for each head of each token.
template <typename X>
__global__ void ScaleLinearHeadsKernel(ScaleLinearHeadsArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int heads = 2 * a.num_k_heads;
  const RowOfThread at(static_cast<int64_t>(a.num_tokens) * heads);
  const int64_t row = at.exists ? at.row : 0;
  X* head = a.x + row / heads * a.ldx + row % heads * a.k_dim;
  const float scale = ScaleOfHead(head, at.exists ? a.k_dim : 0, a.eps, at.lane);
  const float gain = row % heads < a.num_k_heads ? a.q_gain : a.k_gain;
  if (!at.exists) return;
  for (int i = at.lane; i < a.k_dim; i += kRowLanes) head[i] = (head[i] * scale) * gain;
}

// The delta rule. A block has kDeltaCols columns of a head's state: four lanes for each column,
// which have every fourth row of the state in registers. So the four partial sums of a token are
// those of the lanes. Operands of some tokens at a time are copied ahead.
inline constexpr int kDeltaThreads = 4 * kDeltaCols;
inline constexpr int kDeltaTokens = 8;  // copied at a time
// The width of heads that has a kernel of its own.
inline constexpr int kWholeDeltaDim = 128;

// Operands of kDeltaTokens tokens, for heads of up to kDim elements.
template <int kDim>
struct DeltaStage {
  alignas(16) float q[kDeltaTokens][kDim], k[kDeltaTokens][kDim];
  alignas(16) float v[kDeltaTokens][kDeltaCols];
  DeltaGates gates[kDeltaTokens];
};
template <int kDim>
struct DeltaShared {
  DeltaStage<kDim> stages[2];
};

// The operands that a block reads of each token.
template <int kDim>
class DeltaOperands {
 public:
  __device__ __forceinline__ DeltaOperands(const DeltaArgs& a, const StateRow& row, int head,
                                           int v_column)
      : k_dim_(a.k_dim), num_tokens_(row.num_tokens), ldx_(a.ldx), num_heads_(a.num_v_heads) {
    const int k_head =
        a.tiled_v_heads ? head % a.num_k_heads : head / (a.num_v_heads / a.num_k_heads);
    const float* x = a.x + row.first_token * a.ldx;
    q_ = x + k_head * a.k_dim;
    k_ = q_ + a.num_k_heads * a.k_dim;
    v_ = x + 2 * a.num_k_heads * a.k_dim + v_column;
    gates_ = static_cast<const DeltaGates*>(a.gates) +
             static_cast<int64_t>(row.first_token) * a.num_v_heads + head;
  }

  // Begins the copies of the tokens from `first` on.
  __device__ __forceinline__ void Copy(int first, DeltaStage<kDim>& stage) const {
    const int fours = k_dim_ / 4, of_token = 2 * fours + kDeltaCols / 4 + 1;
    for (int i = static_cast<int>(threadIdx.x); i < kDeltaTokens * of_token; i += kDeltaThreads) {
      const int t = i / of_token, four = i - t * of_token;
      const bool exists = first + t < num_tokens_;
      const int64_t token = exists ? first + t : 0;
      const float* x = q_ + token * ldx_ + 4 * four;
      float* to = &stage.q[t][0] + 4 * four;
      if (four >= 2 * fours + kDeltaCols / 4) {
        x = &gates_[token * num_heads_].decay;
        to = &stage.gates[t].decay;
      } else if (four >= 2 * fours) {
        x = v_ + token * ldx_ + 4 * (four - 2 * fours);
        to = &stage.v[t][0] + 4 * (four - 2 * fours);
      } else if (four >= fours) {
        x = k_ + token * ldx_ + 4 * (four - fours);
        to = &stage.k[t][0] + 4 * (four - fours);
      }
      CopyAsync16(to, x, exists);
    }
    CommitCopies();
  }

 private:
  const int k_dim_, num_tokens_;
  const int64_t ldx_;
  const int num_heads_;
  const float *q_, *k_, *v_;
  const DeltaGates* gates_;
};

// The sum over the four lanes of a column, as (p0 + p1) + (p2 + p3).
__device__ __forceinline__ float SumOfColumnLanes(float lane) {
  lane = lane + __shfl_xor_sync(kAllLanes, lane, 1);
  return lane + __shfl_xor_sync(kAllLanes, lane, 2);
}

// A lane's part of a column of the state: the rows lane, lane + 4, and so on.
template <int kDim>
struct DeltaColumn {
  static constexpr int kRows = kDim / 4;

  __device__ __forceinline__ explicit DeltaColumn(int k_dim)
      : lane(static_cast<int>(threadIdx.x) % 4),
        column(static_cast<int>(threadIdx.x) / 4),
        rows(k_dim / 4) {}

  __device__ __forceinline__ void Load(const float* from) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      state[r] = from != nullptr && Has(r) ? from[Index(r)] : 0.0f;
    }
  }
  __device__ __forceinline__ void Store(float* to) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (Has(r)) to[Index(r)] = state[r];
    }
  }
  // Takes token t of a stage. Returns the column's result.
  __device__ __forceinline__ float Take(const DeltaStage<kDim>& stage, int t) {
    const float decay = stage.gates[t].decay;
    float k[kRows], sum = 0.0f;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      k[r] = Has(r) ? stage.k[t][4 * r + lane] : 0.0f;
      if (Has(r)) sum = fmaf(k[r], state[r], sum);
    }
    const float old = decay * SumOfColumnLanes(sum);
    const float u = (stage.v[t][column] - old) * stage.gates[t].beta;
    sum = 0.0f;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!Has(r)) continue;
      state[r] = fmaf(k[r], u, decay * state[r]);
      sum = fmaf(stage.q[t][4 * r + lane], state[r], sum);
    }
    return SumOfColumnLanes(sum);
  }

  // Whether the head has the lane's row number r.
  __device__ __forceinline__ bool Has(int r) const { return kDim == kWholeDeltaDim || r < rows; }
  __device__ __forceinline__ int Index(int r) const { return (4 * r + lane) * kDeltaCols + column; }

  const int lane, column, rows;
  float state[kRows];
};

// Grid: columns of v / kDeltaCols, rows. k_dim is at most kDim, and kWholeDeltaDim if that is.
template <int kDim>
__global__ void __launch_bounds__(kDeltaThreads) DeltaKernel(DeltaArgs a) {
  LetNextKernelStart();
  const StateRow& row = a.rows[blockIdx.y];
  WaitForPreviousKernel();  // the integers are there before the pass's first kernel
  auto& shared = SharedMemory<DeltaShared<kDim>>();
  const int part = static_cast<int>(blockIdx.x), v_column = part * kDeltaCols;
  const DeltaOperands<kDim> operands(a, row, v_column / a.v_dim, v_column);
  operands.Copy(0, shared.stages[0]);
  const int64_t offset = static_cast<int64_t>(part) * a.k_dim * kDeltaCols;
  const auto slot = [&](int index) { return a.states + index * a.slot_floats + offset; };
  DeltaColumn<kDim> column(a.k_dim);
  column.Load(row.from < 0 ? nullptr : slot(row.from));
  float* v = a.x + row.first_token * a.ldx + 2 * a.num_k_heads * a.k_dim + v_column + column.column;
  int snapshot = 0;
#pragma unroll 1
  for (int first = 0; first < row.num_tokens; first += kDeltaTokens) {
    operands.Copy(first + kDeltaTokens, shared.stages[first / kDeltaTokens % 2 == 0 ? 1 : 0]);
    WaitForCopies<1>();
    __syncthreads();  // the operands of these tokens are there
    const DeltaStage<kDim>& stage = shared.stages[first / kDeltaTokens % 2];
    const int left = row.num_tokens - first;
#pragma unroll 1
    for (int t = 0; t < (left < kDeltaTokens ? left : kDeltaTokens); ++t) {
      const float result = column.Take(stage, t);
      if (column.lane == 0) v[(first + t) * a.ldx] = result;
      if (snapshot < StateRow::kSnapshots && row.snapshots[snapshot].slot >= 0 &&
          row.snapshots[snapshot].tokens == first + t + 1) {
        column.Store(slot(row.snapshots[snapshot].slot));
        ++snapshot;
      }
    }
    __syncthreads();  // no thread reads them any more
  }
  WaitForCopies<0>();
  if (row.to >= 0) column.Store(slot(row.to));
}

// out = silu(z) times the norm of v, head by head. 16 lanes for each head of each token.
template <typename T>
__global__ void GatedNormKernel(GatedNormArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const RowOfThread at(static_cast<int64_t>(a.num_tokens) * a.num_heads);
  const int64_t row = at.exists ? at.row : 0;
  const int64_t token = row / a.num_heads, first = row % a.num_heads * a.v_dim;
  const float *v = a.v + token * a.ldv + first, *z = a.z + token * a.ldz + first;
  T* out = static_cast<T*>(a.out) + token * a.ldo + first;
  const float scale = ScaleOfHead(v, at.exists ? a.v_dim : 0, a.eps, at.lane);
  if (!at.exists) return;
  for (int i = at.lane; i < a.v_dim; i += kRowLanes) {
    Round(Silu(z[i]) * ((v[i] * scale) * a.weight[i]), out + i);
  }
}

// x = x * sigmoid(gate), rounded to T, in place. Grid: rows.
template <typename T>
__global__ void AttentionGateKernel(AttentionGateArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t row = blockIdx.x;
  const FoursOfRow<const float> gate(a.gate + row * a.width, a.width);
  const FoursOfRow<T> x(static_cast<T*>(a.x) + row * a.ldx, a.width);
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < a.width; first += kRowSteps) {
    Four<float> of_gate[kFours];
    Four<T> of_x[kFours];
    gate.Load(first, of_gate);
    x.Load(first, of_x);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float factor = 1.0f / (1.0f + Exp(0.0f - of_gate[k].of[e]));
        Round(Widen(of_x[k].of[e]) * factor, &of_x[k].of[e]);
      }
      x.Store(first + k * kRowStep, of_x[k]);
    }
  }
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
