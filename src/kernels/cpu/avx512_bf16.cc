// Products of bf16 with vdpbf16ps: the BF16 class of docs/numerics.md. avx512.cc explains the order
// of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/gemm_bf16_body.h"
#include "kernels/cpu/gemm_body.h"

namespace skein {
namespace {

using avx512::Vec;

constexpr int32_t kRows = 96;         // rows whose sums are kept on the stack
constexpr int32_t kPanels = 8;        // panels at a time; with SwiGLU half of them are of the gate
constexpr int32_t kBlockTerms = 512;  // of k, for all rows and panels at a time
// The distance in bytes of rows in a block. It is an odd number of cache lines, which spreads the
// rows over the sets of the first-level cache.
constexpr int64_t kBlockStride = kBlockTerms * 2 + 64;

// Copies [rows, terms] of bf16 to rows that are kBlockStride bytes apart. Pads an odd last term
// with a zero.
void CopyBlock(const uint16_t* a, int64_t lda, int32_t rows, int32_t terms, std::byte* block) {
  for (int32_t r = 0; r < rows; ++r, a += lda, block += kBlockStride) {
    for (int32_t i = 0; i < terms; i += 32) {
      const int32_t n = terms - i < 32 ? terms - i : 32;
      const auto mask = static_cast<__mmask32>(~0u >> (32 - n));
      _mm512_storeu_si512(block + 2 * i, _mm512_maskz_loadu_epi16(mask, a + i));
    }
  }
}

// Adds the pairs of a block to c [rows, 16 num_panels]. While the first rows are computed, the
// panels that come next are prefetched. After the last panel, the next ones are the first panels in
// the next block of k.
void AddBlock(const std::byte* block, int32_t rows, const std::byte* const* panels,
              int32_t num_panels, int32_t num_pairs, float* c) {
  const int64_t ldc = kPanelCols * num_panels;
  const int32_t most_rows = RowsPerDotTile(rows);
  const int32_t most_panels = MostPanels(most_rows);
  for (int32_t p = 0; p < num_panels; p += most_panels) {
    const int32_t count = num_panels - p < most_panels ? num_panels - p : most_panels;
    const std::byte* ahead[kMostTilePanels];
    for (int32_t i = 0; i < count; ++i) {
      const int32_t next = p + most_panels + i;
      ahead[i] = next < num_panels ? panels[next] : panels[i] + num_pairs * kPairBytes;
    }
    for (int32_t r = 0; r < rows; r += most_rows) {
      const std::byte* a = block + r * kBlockStride;
      float* sums_at = c + r * ldc + kPanelCols * p;
      const auto tile = [&](auto num_rows, auto num_cols) {
        constexpr int R = decltype(num_rows)::value, P = decltype(num_cols)::value;
        DotSums<R, P> sums;
        LoadSums<R, P>(sums_at, ldc, /*fresh=*/false, sums);
        AddPairs<kBlockStride, R, P>(a, panels + p, r == 0 ? ahead : panels + p, num_pairs, sums);
        StoreSums<R, P>(sums, sums_at, ldc);
      };
      WithConstant<kMostTileRows>(rows - r < most_rows ? rows - r : most_rows, [&](auto num_rows) {
        WithConstant<MostPanels(decltype(num_rows)::value)>(
            count, [&](auto num_cols) { tile(num_rows, num_cols); });
      });
    }
  }
}

// Computes the sums of `rows` rows from `row` on over the panels, to c [rows, 16 num_panels].
void PanelSums(const GemmCall& call, const std::byte* const* panels, int32_t num_panels,
               int32_t row, int32_t rows, float* c) {
  alignas(64) std::byte block[kRows * kBlockStride];
  const int32_t k = call.w->k();
  const int64_t ldc = kPanelCols * num_panels;
  const auto* a = static_cast<const uint16_t*>(call.a) + row * call.lda;
  for (int64_t i = 0; i < rows * ldc; i += 16) Vec::Set(0.0f).Store(c + i);
  for (int32_t begin = 0; begin < k; begin += kBlockTerms) {
    const int32_t terms = k - begin < kBlockTerms ? k - begin : kBlockTerms;
    CopyBlock(a + begin, call.lda, rows, terms, block);
    const std::byte* parts[kPanels];
    for (int32_t p = 0; p < num_panels; ++p) parts[p] = panels[p] + begin / 2 * kPairBytes;
    AddBlock(block, rows, parts, num_panels, (terms + 1) / 2, c);
  }
}

}  // namespace

void Avx512Bf16Gemm(const GemmCall& call) {
  alignas(64) float c[kRows * kPanelCols * kPanels];
  const bool swiglu = call.up_begin > 0;
  const int32_t end = (call.n_end + kPanelCols - 1) / kPanelCols;
  const int32_t most = swiglu ? kPanels / 2 : kPanels;
  for (int32_t first = call.n_begin / kPanelCols; first < end; first += most) {
    const int32_t count = end - first < most ? end - first : most;
    const std::byte* panels[kPanels];  // with SwiGLU first the gate's panels, then those of up
    for (int32_t p = 0; p < count; ++p) {
      panels[p] = call.w->panel(first + p);
      if (swiglu) panels[count + p] = call.w->panel(first + call.up_begin / kPanelCols + p);
    }
    const int32_t num_panels = swiglu ? 2 * count : count;
    for (int32_t row = 0; row < call.m; row += kRows) {
      const int32_t rows = call.m - row < kRows ? call.m - row : kRows;
      PanelSums(call, panels, num_panels, row, rows, c);
      for (int32_t p = 0; p < count; ++p) {
        FinishPanel<Vec>(call, c + kPanelCols * p, swiglu ? c + kPanelCols * (count + p) : nullptr,
                         kPanelCols * num_panels, row, rows, kPanelCols * (first + p));
      }
    }
  }
}

}  // namespace skein
