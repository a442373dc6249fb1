#include "model/forward/operators/attention_gate_operator.h"

namespace skein {

void AttentionGateOperator::RunRows(int32_t begin, int32_t end) {
  const int32_t q_width = pass_.q_width();
  const int32_t piece = pass_.row_tiles ? kRowPiece : q_width;
  for (int64_t i = begin; i < end; ++i) {
    const float* const gate = pass_.workspace.sums + i * q_width;
    for (int32_t column = 0; column < q_width; column += piece) {
      std::byte* const x = pass_.At(pass_.workspace.attn, range_.first + i, column, q_width);
      pass_.kernels().SigmoidMul(gate + column, piece, x, pass_.weights().dtype);
    }
  }
}

}  // namespace skein
