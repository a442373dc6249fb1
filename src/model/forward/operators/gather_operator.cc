#include "model/forward/operators/gather_operator.h"

#include <algorithm>
#include <cstring>

namespace skein {
namespace {

constexpr size_t kGatherTicketBytes = size_t{1} << 20;

}  // namespace

int32_t GatherOperator::Begin(OperatorRange) {
  pass_.layout.KeepOutputTokens();
  const int32_t n = pass_.layout.num_active();
  // No tickets are needed if every active row is in its place already.
  if (n == 0 || pass_.layout.TokenAt(n - 1) == n - 1) return num_tickets_ = 0;
  const size_t row_bytes = pass_.config().hidden_size * sizeof(float) + pass_.q_width() * pass_.t;
  const auto wide =
      static_cast<int32_t>((n * row_bytes + kGatherTicketBytes - 1) / kGatherTicketBytes);
  return num_tickets_ = std::min(wide, CeilDiv(pass_.q_width(), kRowPiece));
}

// A ticket moves some columns of all rows, beginning with the first row. So every row is read
// before it is overwritten, and no two tickets touch the same column.
void GatherOperator::Run(int32_t ticket) {
  // The ticket's share of n columns or pieces: [begin_of(n), end_of(n)).
  const auto begin_of = [&](int64_t n) { return static_cast<int32_t>(n * ticket / num_tickets_); };
  const auto end_of = [&](int64_t n) {
    return static_cast<int32_t>(n * (ticket + 1) / num_tickets_);
  };
  const int64_t hidden = pass_.config().hidden_size;
  const int32_t x_begin = begin_of(hidden), x_end = end_of(hidden);
  const int32_t q_width = pass_.q_width();
  const int32_t num_pieces = CeilDiv(q_width, kRowPiece);
  const int32_t q_begin = begin_of(num_pieces) * kRowPiece;
  const int32_t q_end = std::min(end_of(num_pieces) * kRowPiece, q_width);
  float* const x = pass_.workspace.x;
  std::byte* const q = pass_.workspace.q;
  for (int32_t i = 0; i < pass_.layout.num_active(); ++i) {
    const int32_t token = pass_.layout.TokenAt(i);
    if (token == i) continue;
    std::copy_n(x + token * hidden + x_begin, x_end - x_begin, x + i * hidden + x_begin);
    for (int32_t column = q_begin; column < q_end; column += kRowPiece) {
      std::memcpy(pass_.At(q, i, column, q_width), pass_.At(q, token, column, q_width),
                  std::min(kRowPiece, q_end - column) * pass_.t);
    }
  }
}

}  // namespace skein
