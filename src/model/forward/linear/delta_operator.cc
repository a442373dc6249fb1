#include "model/forward/linear/delta_operator.h"

namespace skein {

DeltaOperator::DeltaOperator(PassState& pass, int32_t layer)
    : pass_(pass), shape_(pass.config().decoder.linear), rows_(pass, layer) {}

int32_t DeltaOperator::Begin(OperatorRange range) {
  rows_.Begin(range);
  return shape_.v_width() / kDeltaCols;
}

void DeltaOperator::Run(int32_t ticket) {
  const int64_t width = shape_.width();
  const int32_t head = ticket * kDeltaCols / shape_.v_dim;  // of v
  const int32_t k_head = shape_.KHeadOf(head);
  const int64_t size = int64_t{shape_.k_dim} * kDeltaCols;
  alignas(64) float state[kMaxDeltaDim * kDeltaCols];
  const auto run = [&](int32_t first, int32_t count) {
    float* const x = pass_.workspace.sums + first * width;
    const float* const b = x + shape_.conv_width() + shape_.v_width() + head;
    pass_.kernels().Delta({.state = state,
                           .q = x + int64_t{k_head} * shape_.k_dim,
                           .k = x + shape_.k_width() + int64_t{k_head} * shape_.k_dim,
                           .v = x + 2 * shape_.k_width() + int64_t{ticket} * kDeltaCols,
                           .decay = b + shape_.num_v_heads,
                           .beta = b,
                           .ld = width,
                           .num_tokens = count,
                           .k_dim = shape_.k_dim});
  };
  rows_.Walk(pass_.context.state_layout.conv_floats + ticket * size, size, state, run);
}

}  // namespace skein
