#pragma once

// Kernels that work row by row. A block computes a row. Its threads take four adjacent elements at
// a time, and have several fours in flight, since a row alone waits for memory only. The sum of
// squares of a row has the order of 16 lanes: lane i adds the elements i, i + 16 and so on.

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/args.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/math.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kRowThreads = 128;
inline constexpr int kRowsPerBlock = kRowThreads / kRowLanes;

struct RowOfThread {
  __device__ __forceinline__ explicit RowOfThread(int64_t count)
      : lane(static_cast<int>(threadIdx.x) % kRowLanes),
        row(static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kRowLanes),
        exists(row < count) {}

  int lane;
  int64_t row;
  bool exists;  // false: the lane has no row, but still takes part in sums
};

// The index of the element (column of w, index along k) in a PackedWeight with `words` words per
// row.
template <typename T>
__device__ __forceinline__ int64_t PanelIndex(int64_t column, int64_t k, int64_t words) {
  constexpr int kPerWord = 4 / sizeof(T);
  return ((column / 16 * words + k / kPerWord) * 16 + column % 16) * kPerWord + k % kPerWord;
}

// The fours that a thread has in flight, and the distance from one to the next.
inline constexpr int kFours = 2;
inline constexpr int kRowStep = 4 * kRowThreads;
inline constexpr int kRowSteps = kFours * kRowStep;

// Four adjacent elements, which move at once if a row's address and width allow it.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T of[4];
};

// A row of `width` elements, in fours. T may be const.
template <typename T>
struct FoursOfRow {
  using Element = std::remove_const_t<T>;

  __device__ __forceinline__ FoursOfRow(T* first, int row_width)
      : row(first),
        width(row_width),
        whole(row_width % 4 == 0 &&
              reinterpret_cast<uintptr_t>(first) % sizeof(Four<Element>) == 0) {}

  // Loads kCount fours, kRowStep elements apart. Behind the row there are zeros.
  template <int kCount>
  __device__ __forceinline__ void Load(int first, Four<Element> (&fours)[kCount]) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) fours[k] = {};
    if (whole) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const int i = first + k * kRowStep;
        if (i < width) fours[k] = *reinterpret_cast<const Four<Element>*>(row + i);
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < 4 * kCount; ++k) {
      const int i = first + k / 4 * kRowStep + k % 4;
      if (i < width) fours[k / 4].of[k % 4] = row[i];
    }
  }
  // Stores the part of a four that is in the row.
  __device__ __forceinline__ void Store(int i, const Four<Element>& four) const {
    if (whole) {
      if (i < width) *reinterpret_cast<Four<Element>*>(row + i) = four;
      return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (i + k < width) row[i + k] = four.of[k];
    }
  }

  T* row;
  int width;
  bool whole;
};

// Elements of a row in shared memory at a time.
inline constexpr int kRowPart = 4096;
struct RowShared {
  alignas(16) float part[kRowPart];
  float sum;
};

// A sum over a row: each lane's own becomes add(sum, element) with its elements in order. All
// threads of the block get it. They copy the row to shared memory, from which the lanes add it.
template <class Add>
__device__ __forceinline__ float SumOfRow(const FoursOfRow<const float>& x, RowShared& shared,
                                          const Add& add) {
  constexpr int kCopies = 4;  // fours in flight
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < x.width; first += kRowPart) {
    const int count = x.width - first < kRowPart ? x.width - first : kRowPart;
#pragma unroll 1
    for (int i = 4 * thread; i < count; i += kCopies * kRowStep) {
      Four<float> four[kCopies];
      x.Load(first + i, four);
#pragma unroll
      for (int k = 0; k < kCopies; ++k) {
        const int at = i + k * kRowStep;
        if (at < count) *reinterpret_cast<Four<float>*>(shared.part + at) = four[k];
      }
    }
    __syncthreads();
    if (thread < 2 * kRowLanes) {
#pragma unroll 16
      for (int i = thread % kRowLanes; i < count; i += kRowLanes) {
        sum = add(sum, shared.part[i]);
      }
    }
    if (first + kRowPart < x.width) __syncthreads();  // before the next part takes its place
  }
  if (thread < 2 * kRowLanes) {
    sum = SumOfRowLanes(sum);
    if (thread == 0) shared.sum = sum;
  }
  __syncthreads();
  return shared.sum;
}

// One over the root of the mean square of a row.
__device__ __forceinline__ float ScaleOfRow(const FoursOfRow<const float>& x, float eps,
                                            RowShared& shared) {
  const float sum = SumOfRow(
      x, shared, [](float of_lane, float element) { return fmaf(element, element, of_lane); });
  return 1.0f / sqrtf(sum / static_cast<float>(x.width) + eps);
}

// The adjacent elements of a table's row that a thread loads at once.
template <typename T>
struct alignas(4) TableWord {
  static constexpr int kElements = 4 / sizeof(T);
  T of[kElements];
};

// Loads word `word` of a row of `width` elements. Words of panels lie apart.
template <typename T, bool kPanels>
__device__ __forceinline__ TableWord<T> LoadTableWord(const T* row, int word, int width) {
  using Word = TableWord<T>;
  const T* from = row + int64_t{word} * Word::kElements * (kPanels ? 16 : 1);
  if constexpr (!kPanels && Word::kElements > 1) {
    if (width % Word::kElements != 0) {  // then rows begin between words
      Word loaded = {};
      for (int e = 0; e < Word::kElements; ++e) {
        if (word * Word::kElements + e < width) loaded.of[e] = from[e];
      }
      return loaded;
    }
  }
  return *reinterpret_cast<const Word*>(from);
}

// Grid: tokens. kPanels: the table is a PackedWeight; otherwise it has plain rows.
template <typename T, bool kPanels>
__global__ void EmbedKernel(EmbedArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  constexpr int kElements = TableWord<T>::kElements, kWords = 4;  // words in flight
  const int64_t row = blockIdx.x, token = a.tokens[row];
  const T* table = static_cast<const T*>(a.table);
  table += kPanels ? PanelIndex<T>(token, 0, a.words) : token * a.hidden;
  const float scale = sizeof(T) == 1 ? a.scales[token] : 1.0f;
  const int words = (a.hidden + kElements - 1) / kElements;
  float* x = a.x + row * a.hidden;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x); first < words; first += kWords * kRowThreads) {
    TableWord<T> loaded[kWords] = {};
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      const int word = first + k * kRowThreads;
      if (word < words) loaded[k] = LoadTableWord<T, kPanels>(table, word, a.hidden);
    }
#pragma unroll
    for (int k = 0; k < kWords * kElements; ++k) {
      const int i = (first + k / kElements * kRowThreads) * kElements + k % kElements;
      if (i >= a.hidden) continue;
      float value = 0.0f;
      if constexpr (sizeof(T) == 1) {
        value = static_cast<float>(loaded[k / kElements].of[k % kElements]) * scale;
      } else {
        value = Widen(loaded[k / kElements].of[k % kElements]);
      }
      x[i] = a.scale == 1.0f ? value : value * a.scale;
    }
  }
}

// Grid: rows.
template <typename T>
__global__ void RmsNormKernel(RmsNormArgs a) {
  LetNextKernelStart();
  const int64_t at = blockIdx.x;
  const bool norms = a.weight != nullptr;
  const FoursOfRow<const float> weight(a.weight, norms ? a.width : 0);
  const int thread = static_cast<int>(threadIdx.x);
  Four<float> gain[kFours];
  weight.Load(4 * thread, gain);
  const int64_t row = a.rows != nullptr ? a.rows[at] : at;
  WaitForPreviousKernel();  // all but x is there before the pass's first kernel
  const FoursOfRow<const float> x(a.x + row * a.ldx, a.width);
  const FoursOfRow<T> out(static_cast<T*>(a.out) + at * a.ldo, a.width);
  const float scale = norms ? ScaleOfRow(x, a.eps, SharedMemory<RowShared>()) : 1.0f;
#pragma unroll 1
  for (int first = 4 * thread; first < a.width; first += kRowSteps) {
    Four<float> of_x[kFours];
    x.Load(first, of_x);
    if (first >= kRowSteps) weight.Load(first, gain);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      Four<T> four;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float value = of_x[k].of[e];
        Round(norms ? (value * scale) * gain[k].of[e] : value, &four.of[e]);
      }
      out.Store(first + k * kRowStep, four);
    }
  }
}

// Grid: rows, matrices.
template <typename Word>
__global__ void GatherKernel(GatherArgs a) {
  constexpr int kCopies = 4;  // fours in flight
  LetNextKernelStart();
  const int64_t at = blockIdx.x, row = a.rows[at];
  WaitForPreviousKernel();  // all but the matrices is there before the pass's first kernel
  const GatheredMatrix matrix = blockIdx.y == 0 ? a.first : a.second;
  const int width = matrix.words;
  const FoursOfRow<const Word> from(static_cast<const Word*>(matrix.from) + row * width, width);
  const FoursOfRow<Word> to(static_cast<Word*>(matrix.to) + at * width, width);
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < width; first += kCopies * kRowStep) {
    Four<Word> fours[kCopies];
    from.Load(first, fours);
#pragma unroll
    for (int k = 0; k < kCopies; ++k) to.Store(first + k * kRowStep, fours[k]);
  }
}

// Grid: rows, peers. A row goes over the link between two devices in pieces of 16 bytes.
template <typename Word>
__global__ void ShareColumnsKernel(ShareColumnsArgs a) {
  constexpr int kCopies = 4;  // fours in flight
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t at = blockIdx.x * a.stride;
  const FoursOfRow<const Word> from(a.from + at, a.words);
  const FoursOfRow<Word> to(a.to[blockIdx.y] + at, a.words);
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < a.words;
       first += kCopies * kRowStep) {
    Four<Word> fours[kCopies];
    from.Load(first, fours);
#pragma unroll
    for (int k = 0; k < kCopies; ++k) to.Store(first + k * kRowStep, fours[k]);
  }
}

// Grid: rows. X: the type of the residual stream.
template <typename X>
__global__ void BranchKernel(BranchArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t row = blockIdx.x;
  const bool norms = a.weight != nullptr;
  const FoursOfRow<const float> weight(a.weight, norms ? a.width : 0);
  const FoursOfRow<const float> branch(a.branch + row * a.width, a.width);
  const FoursOfRow<X> x(a.x + row * a.width, a.width);
  const float scale = norms ? ScaleOfRow(branch, a.eps, SharedMemory<RowShared>()) : 1.0f;
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < a.width; first += kRowSteps) {
    Four<float> of_branch[kFours], gain[kFours];
    Four<X> of_x[kFours];
    branch.Load(first, of_branch);
    weight.Load(first, gain);
    x.Load(first, of_x);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float of = of_branch[k].of[e];
        const float value = norms ? (of * scale) * gain[k].of[e] : of;
        of_x[k].of[e] = of_x[k].of[e] + a.scale * value;
      }
      x.Store(first + k * kRowStep, of_x[k]);
    }
  }
}

// Grid: rows.
template <typename T>
__global__ void ActivateKernel(ActivateArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t row = blockIdx.x;
  const FoursOfRow<const float> x(a.x + row * a.width, a.width);
  const FoursOfRow<T> out(static_cast<T*>(a.out) + row * a.ldo, a.width);
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < a.width; first += kRowSteps) {
    Four<float> of_x[kFours];
    x.Load(first, of_x);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      Four<T> four;
#pragma unroll
      for (int e = 0; e < 4; ++e) Round(Activate(a.gate, of_x[k].of[e]), &four.of[e]);
      out.Store(first + k * kRowStep, four);
    }
  }
}

// Grid: rows.
template <typename T>
__global__ void GateSumsKernel(GateSumsArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  const int64_t row = blockIdx.x;
  const FoursOfRow<const float> gate(a.x + row * a.ldx, a.width), up(gate.row + a.up, a.width);
  const FoursOfRow<T> out(static_cast<T*>(a.out) + row * a.ldo, a.width);
#pragma unroll 1
  for (int first = 4 * static_cast<int>(threadIdx.x); first < a.width; first += kRowSteps) {
    Four<float> of_gate[kFours], of_up[kFours];
    gate.Load(first, of_gate);
    up.Load(first, of_up);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      Four<T> four;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        Round(Gated(a.gate, of_gate[k].of[e], of_up[k].of[e]), &four.of[e]);
      }
      out.Store(first + k * kRowStep, four);
    }
  }
}

// The larger of `largest` and the magnitude of x. Infinity stands for a NaN, too.
__device__ __forceinline__ float LargerMagnitude(float largest, float x) {
  const uint32_t magnitude = __float_as_uint(x) & 0x7fffffffu;
  const float value = __uint_as_float(magnitude < 0x7f800000u ? magnitude : 0x7f800000u);
  return value > largest ? value : largest;
}

// How values up to a magnitude become int8.
struct RowScale {
  __device__ __forceinline__ explicit RowScale(float largest) {
    finite = __float_as_uint(largest) < 0x7f800000u;
    const bool zero = largest < 0x1p-100f;
    inverse = finite && !zero ? 127.0f / largest : 0.0f;
    scale = !finite ? __uint_as_float(0x7fc00000u) : zero ? 0.0f : largest / 127.0f;
  }
  __device__ __forceinline__ int8_t Quantize(float x) const {
    return finite ? static_cast<int8_t>(rintf(x * inverse)) : int8_t{0};
  }

  bool finite;
  float inverse, scale;
};

struct QuantizeShared {
  float largest[kRowThreads / 32];  // of warps
};

// Grid: rows.
template <typename T>
__global__ void QuantizeKernel(QuantizeArgs a) {
  LetNextKernelStart();
  WaitForPreviousKernel();
  auto& shared = SharedMemory<QuantizeShared>();
  const int64_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const FoursOfRow<const T> x(static_cast<const T*>(a.x) + row * a.ldx, a.width);
  const FoursOfRow<int8_t> out(a.out + row * a.ldo, a.width);
  float largest = 0.0f;
#pragma unroll 1
  for (int first = 4 * thread; first < a.width; first += kRowSteps) {
    Four<T> of_x[kFours];
    x.Load(first, of_x);
#pragma unroll
    for (int k = 0; k < 4 * kFours; ++k) {
      largest = LargerMagnitude(largest, Widen(of_x[k / 4].of[k % 4]));
    }
  }
  const float other = __shfl_xor_sync(kAllLanes, largest, kRowLanes);
  largest = MaxOfRowLanes(other > largest ? other : largest);
  if (thread % 32 == 0) shared.largest[thread / 32] = largest;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRowThreads / 32; ++i) largest = LargerMagnitude(largest, shared.largest[i]);
  const RowScale scale(largest);
#pragma unroll 1
  for (int first = 4 * thread; first < a.width; first += kRowSteps) {
    Four<T> of_x[kFours];
    x.Load(first, of_x);
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      Four<int8_t> four;
#pragma unroll
      for (int e = 0; e < 4; ++e) four.of[e] = scale.Quantize(Widen(of_x[k].of[e]));
      out.Store(first + k * kRowStep, four);
    }
  }
  if (thread == 0) a.scales[row] = scale.scale;
}

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
