#include "model/forward/relative/distance_operator.h"

namespace skein {

DistanceOperator::DistanceOperator(PassState& pass, int32_t layer)
    : pass_(pass), layer_(pass.weights().layers[layer]), blocks_(pass, layer) {}

int32_t DistanceOperator::Begin(OperatorRange) {
  return static_cast<int32_t>(pass_.layout.block_spans().size()) * pass_.config().num_heads;
}

void DistanceOperator::Run(int32_t ticket) {
  const ModelConfig& c = pass_.config();
  const KvLayout& layout = pass_.context.kv_layout;
  const RowSpan& span = pass_.layout.block_spans()[ticket / c.num_heads];
  const int32_t head = ticket % c.num_heads, num_rows = c.encoder.relative.num_rows();
  const std::byte* const block = blocks_.LoadBlock(span) + head * layout.head_stride();
  const int32_t slot = pass_.layout.Position(span.row, span.first) % kKvBlockTokens;
  alignas(64) std::byte keys[kKvBlockTokens * kMaxHeadDim * sizeof(float)];
  for (int32_t i = 0; i < span.count; ++i) {
    layout.LoadK(block, slot + i, keys + i * c.head_dim * pass_.t);
  }
  pass_.kernels().Gemm({.a = keys,
                        .lda = c.head_dim,
                        .m = span.count,
                        .w = &layer_.distance_queries,
                        .n_begin = head * num_rows,
                        .n_end = (head + 1) * num_rows,
                        .out = pass_.KeyTerms(head, span.first),
                        .ldo = num_rows,
                        .out_begin = head * num_rows});
}

}  // namespace skein
