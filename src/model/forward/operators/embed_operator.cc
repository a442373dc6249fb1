#include "model/forward/operators/embed_operator.h"

namespace skein {
namespace {

float ScaleOf(const ModelWeights& weights) {
  const DecoderFields& decoder = weights.config.decoder;
  const bool rounds = decoder.rounds_embedding_scale && weights.dtype == DType::kBf16;
  return rounds ? ToFloat(ToBf16(decoder.embedding_scale)) : decoder.embedding_scale;
}

}  // namespace

EmbedOperator::EmbedOperator(PassState& pass)
    : RowOperator(pass), scale_(ScaleOf(pass.weights())) {}

void EmbedOperator::RunRows(int32_t begin, int32_t end) {
  const int32_t hidden = pass_.config().hidden_size;
  for (int32_t i = begin; i < end; ++i) {
    float* const x = pass_.workspace.x + size_t(i) * hidden;
    pass_.weights().EmbeddingRow(pass_.batch.tokens[i], x);
    if (scale_ == 1) continue;
    for (int32_t d = 0; d < hidden; ++d) x[d] *= scale_;
  }
}

}  // namespace skein
