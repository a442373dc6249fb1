#include "model/forward/operators/collect_operator.h"

#include <algorithm>
#include <cstring>

namespace skein {
namespace {

constexpr size_t kTicketBytes = size_t{1} << 20;

}  // namespace

int32_t CollectOperator::Copy::num_tickets() const {
  return static_cast<int32_t>((bytes + kTicketBytes - 1) / kTicketBytes);
}

int32_t CollectOperator::Begin(OperatorRange range) {
  const ForwardWorkspace& w = pass_.workspace;
  if (what_ == What::kQkv) {
    // Copies whole tiles, since q may be in tiles.
    const size_t q_rows = size_t(CeilDiv(range.count, kRowTileRows)) * kRowTileRows;
    copies_[0] = {w.q_out, w.q, q_rows * pass_.q_width() * pass_.t};
    copies_[1] = {w.own_kv_out, w.own_kv,
                  pass_.layout.num_own_blocks() * pass_.context.kv_layout.block_bytes()};
  } else {
    // EndLayer turns the memory of q into the residual stream.
    copies_[0] = {w.x_out, w.q, size_t(range.count) * pass_.config().hidden_size * sizeof(float)};
  }
  return copies_[0].num_tickets() + copies_[1].num_tickets();
}

void CollectOperator::Run(int32_t ticket) {
  const bool first = ticket < copies_[0].num_tickets();
  const Copy& copy = copies_[first ? 0 : 1];
  const size_t begin = (first ? ticket : ticket - copies_[0].num_tickets()) * kTicketBytes;
  std::memcpy(static_cast<std::byte*>(copy.to) + begin,
              static_cast<const std::byte*>(copy.from) + begin,
              std::min(kTicketBytes, copy.bytes - begin));
}

}  // namespace skein
