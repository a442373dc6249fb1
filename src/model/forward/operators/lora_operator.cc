#include "model/forward/operators/lora_operator.h"

#include <algorithm>
#include <array>

namespace skein {
namespace {

// The rows of a ticket are whole tiles, since a product in tiles begins at the first row of a tile.
constexpr int32_t kRows = kRowTileRows;

}  // namespace

int32_t LoraOperator::Begin(OperatorRange range) {
  range_ = range;
  return pass_.layout.has_adapters() ? CeilDiv(range.count, kRows) : 0;
}

// Multiplies all rows of the ticket by each pair among them, since a tile cannot be cut. Only the
// products of rows with the pair's adapter are stored.
void LoraOperator::Run(int32_t ticket) {
  const int32_t begin = ticket * kRows, num_rows = std::min(kRows, range_.count - begin);
  std::array<const LoraPair*, kRows> pairs = {};
  for (int32_t i = 0; i < num_rows; ++i) {
    pairs[i] = pass_.LoraOf(product_, layer_, range_.first + begin + i);
  }
  for (int32_t i = 0; i < num_rows; ++i) {
    const auto before = pairs.begin() + i;
    if (pairs[i] == nullptr || std::find(pairs.begin(), before, pairs[i]) != before) continue;
    Multiply(*pairs[i], begin, std::span(pairs).first(num_rows));
  }
}

void LoraOperator::Multiply(const LoraPair& pair, int32_t begin,
                            std::span<const LoraPair* const> pairs) {
  constexpr int32_t kCols = 4 * kPanelCols;
  alignas(64) float sums[kRows * kCols];
  GemmCall call = pass_.CallOn(pair.a, in_, range_.first, begin);
  call.m = static_cast<int32_t>(pairs.size());
  call.out = sums;
  call.ldo = kCols;
  for (int32_t col = 0; col < pair.rank(); col += kCols) {
    call.n_begin = call.out_begin = col;
    call.n_end = std::min(col + kCols, pair.rank());
    pass_.kernels().Gemm(call);
    for (int32_t row = 0; row < call.m; ++row) {
      if (pairs[row] != &pair) continue;
      float* const out = pass_.workspace.lora + int64_t{begin + row} * pass_.limits.lora_rank;
      std::copy_n(sums + row * kCols, call.n_end - col, out + col);
    }
  }
}

}  // namespace skein
