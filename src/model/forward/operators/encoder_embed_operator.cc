#include "model/forward/operators/encoder_embed_operator.h"

#include <algorithm>

namespace skein {

void EncoderEmbedOperator::RunRows(int32_t begin, int32_t end) {
  const ModelWeights& weights = pass_.weights();
  const size_t hidden = pass_.config().hidden_size;
  const auto after = std::upper_bound(
      pass_.batch.rows.begin(), pass_.batch.rows.end(), begin,
      [](int32_t token, const ForwardRow& row) { return token < row.first_token; });
  auto row = after - 1;
  for (int32_t i = begin; i < end; ++i) {
    if (i == row->first_token + row->num_tokens) ++row;
    const int32_t position = i - row->first_token;
    const bool second =
        pass_.config().encoder.num_segments > 1 && position >= row->second_segment_begin;
    float* x = pass_.workspace.x + i * hidden;
    weights.EmbeddingRow(pass_.batch.tokens[i], x);
    if (!weights.segments.empty()) {
      const float* segment = weights.segments.data() + (second ? hidden : 0);
      for (size_t d = 0; d < hidden; ++d) x[d] += segment[d];
    }
    if (weights.positions.empty()) continue;
    const float* from = weights.positions.data() + position * hidden;
    for (size_t d = 0; d < hidden; ++d) x[d] += from[d];
  }
}

}  // namespace skein
