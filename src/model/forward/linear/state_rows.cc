#include "model/forward/linear/state_rows.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

StateRows::StateRows(PassState& pass, int32_t layer)
    : pass_(pass), linear_layer_(layer - pass.config().KvLayer(layer)) {
  SKEIN_CHECK(pass.config().IsLinear(layer));
  pieces_.reserve(pass.limits.max_tokens);
}

void StateRows::Begin(OperatorRange range) {
  pieces_.clear();
  const auto& rows = pass_.batch.rows;
  const int32_t end = range.first + range.count;
  auto row = std::ranges::upper_bound(rows, range.first, {}, &ForwardRow::first_token) - 1;
  for (; row != rows.end() && row->first_token < end; ++row) {
    const int32_t first = std::max(range.first, row->first_token);
    const int32_t row_end = row->first_token + row->num_tokens;
    pieces_.push_back({.row = static_cast<int32_t>(row - rows.begin()),
                       .first = first - range.first,
                       .count = std::min(end, row_end) - first,
                       .position = row->begin + first - row->first_token,
                       .begins = first == row->first_token,
                       .ends = row_end <= end});
  }
}

float* StateRows::SlotOf(int32_t slot) const {
  return pass_.context.states + pass_.context.state_layout.Offset(slot, linear_layer_);
}

float* StateRows::Between(const ForwardState& state) const {
  return state.to == ForwardState::kNone ? pass_.workspace.own_state : SlotOf(state.to);
}

float* StateRows::EndOf(const Piece& piece) const {
  const ForwardState& state = pass_.batch.rows[piece.row].state;
  return piece.ends && state.to == ForwardState::kNone ? nullptr : Between(state);
}

void StateRows::Load(const Piece& piece, int64_t offset, int64_t size, float* state) const {
  const ForwardState& of_row = pass_.batch.rows[piece.row].state;
  if (piece.begins && of_row.from == ForwardState::kNone) {
    std::fill_n(state, size, 0.0f);
    return;
  }
  const float* from = piece.begins ? SlotOf(of_row.from) : Between(of_row);
  std::copy_n(from + offset, size, state);
}

void StateRows::Store(const float* state, int64_t size, float* to, int64_t offset) {
  if (to != nullptr) std::copy_n(state, size, to + offset);
}

}  // namespace skein
