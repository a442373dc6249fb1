// What an encoder's ForwardPass does in place of a decoder's operators.

#include <algorithm>

#include "model/forward/forward_pass.h"

namespace skein {

// x = (word + segment) + position. Its norm is the first layer's attn_norm.
void ForwardPass::EmbedEncoder(int32_t ticket) {
  const ModelWeights& weights = *context_.weights;
  const size_t hidden = config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, batch_.num_tokens());
  const auto after = std::upper_bound(
      batch_.rows.begin(), batch_.rows.end(), begin,
      [](int32_t token, const ForwardRow& row) { return token < row.first_token; });
  auto row = after - 1;
  for (int32_t i = begin; i < end; ++i) {
    if (i == row->first_token + row->num_tokens) ++row;
    const int32_t position = i - row->first_token;
    const bool second = config().num_segments > 1 && position >= row->second_segment_begin;
    float* x = workspace_.x + i * hidden;
    weights.EmbeddingRow(batch_.tokens[i], x);
    const float* from = weights.positions.data() + position * hidden;
    if (weights.segments.empty()) {
      for (size_t d = 0; d < hidden; ++d) x[d] += from[d];
      continue;
    }
    const float* segment = weights.segments.data() + (second ? hidden : 0);
    for (size_t d = 0; d < hidden; ++d) x[d] = (x[d] + segment[d]) + from[d];
  }
}

void ForwardPass::Up(int32_t ticket) {
  const int32_t padded = config().intermediate_padded();
  const ProductCut& cut = gate_up_cut_;
  const int32_t row = cut.row_begin(ticket);
  const int32_t col = cut.col_begin(ticket);
  const int32_t end = std::min(col + cut.cols, padded);
  const int32_t num_rows = std::min(cut.rows, chunk_tokens_ - row);
  const int64_t ld = padded;
  float* out = workspace_.up + row * ld;
  context_.kernels->Gemm({
      .a = workspace_.h + size_t(row) * config().hidden_size * t_,
      .lda = config().hidden_size,
      .m = num_rows,
      .w = &layer().gate_up,
      .n_begin = col,
      .n_end = end,
      .bias = layer().gate_up_bias.data(),
      .out = out,
      .ldo = ld,
  });
  for (int64_t i = 0; i < num_rows; ++i) {
    context_.kernels->Activate(config().activation, out + i * ld + col, end - col,
                               workspace_.act + ((row + i) * padded + col) * t_,
                               context_.weights->dtype);
  }
}

}  // namespace skein
