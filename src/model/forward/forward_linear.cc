// The operators of ForwardPass that go token by token, and the products.

#include <algorithm>

#include "model/forward/forward_pass.h"

namespace skein {

void ForwardPass::Embed(int32_t ticket) {
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, batch_.num_tokens());
  for (int32_t i = begin; i < end; ++i) {
    context_.weights->EmbeddingRow(batch_.tokens[i],
                                   workspace_.x + size_t(i) * config().hidden_size);
  }
}

void ForwardPass::NormRow(const std::vector<float>& weight, const std::vector<float>& bias,
                          float* x, std::byte* out) {
  const ModelConfig& c = config();
  const DType dtype = context_.weights->dtype;
  if (!c.is_encoder()) {
    context_.kernels->RmsNorm(x, weight.data(), c.rms_norm_eps, c.hidden_size, out, dtype,
                              piece_stride());
    return;
  }
  context_.kernels->LayerNorm(x, weight.data(), bias.data(), c.layer_norm_eps, c.hidden_size, x,
                              DType::kF32);
  context_.kernels->Convert(x, c.hidden_size, out, dtype);
}

void ForwardPass::Norm(int32_t ticket, const std::vector<float>& weight,
                       const std::vector<float>& bias, float* x) {
  const size_t hidden = config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, chunk_tokens_);
  for (int32_t i = begin; i < end; ++i) {
    std::byte* h = At(workspace_.h, i, 0, config().hidden_size);
    NormRow(weight, bias, x + (chunk_begin_ + i) * hidden, h);
    if (int8()) Quantize(i, h, config().hidden_size);
  }
}

void ForwardPass::Quantize(int64_t i, const std::byte* row, int32_t n) {
  workspace_.scales[i] =
      context_.kernels->Quantize(row, context_.weights->dtype, n, workspace_.quantized + i * n);
}

void ForwardPass::QuantizeTokens(int32_t ticket, const std::byte* a, int64_t lda, int32_t n) {
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, chunk_tokens_);
  for (int64_t i = begin; i < end; ++i) Quantize(i, a + i * lda * static_cast<int64_t>(t_), n);
}

// A tile's first row begins where it would without tiles.
ForwardPass::GemmRows ForwardPass::RowsFor(const PackedWeight& w, const Factor& a,
                                           int64_t row) const {
  if (w.dtype() == DType::kInt8) {
    return {workspace_.quantized + row * w.k(), w.k(), workspace_.scales + row, false};
  }
  return {a.rows + row * a.width * static_cast<int64_t>(t_), a.width, nullptr, a.tiles};
}

int32_t ForwardPass::act_width() const {
  const int32_t padded = config().intermediate_padded();
  return row_tiles_ ? CeilDiv(padded, kRowPiece) * kRowPiece : padded;
}

void ForwardPass::Product(int32_t ticket, const ProductCut& cut, const Factor& a, int32_t m,
                          const PackedWeight& w, const std::vector<float>& bias, bool add_to_out,
                          float* out, int64_t ldo) {
  const int64_t row = cut.row_begin(ticket);
  const int32_t col = cut.col_begin(ticket);
  const GemmRows rows = RowsFor(w, a, row);
  context_.kernels->Gemm({
      .a = rows.a,
      .lda = rows.lda,
      .a_scales = rows.scales,
      .m = std::min(cut.rows, m - static_cast<int32_t>(row)),
      .w = &w,
      .n_begin = col,
      .n_end = std::min(col + cut.cols, w.n()),
      .bias = bias.empty() ? nullptr : bias.data(),
      .add_to_out = add_to_out,
      .out = out + row * ldo,
      .ldo = ldo,
      .a_tiles = rows.tiles,
  });
}

void ForwardPass::OProj(int32_t ticket) {
  const int64_t hidden = config().hidden_size;
  float* out = workspace_.x_out + chunk_begin_ * hidden;
  const float* x = workspace_.x + chunk_begin_ * hidden;
  if (out != x) {
    const int32_t row = o_cut_.row_begin(ticket), col = o_cut_.col_begin(ticket);
    const int32_t cols = std::min(o_cut_.cols, config().hidden_size - col);
    for (int64_t i = row; i < std::min(row + o_cut_.rows, chunk_tokens_); ++i) {
      std::copy_n(x + i * hidden + col, cols, out + i * hidden + col);
    }
  }
  const std::byte* attn = workspace_.attn + size_t(chunk_begin_) * q_width() * t_;
  Product(ticket, o_cut_, {attn, q_width(), row_tiles_}, chunk_tokens_, layer().o, layer().o_bias,
          true, out, hidden);
}

void ForwardPass::DownProj(int32_t ticket) {
  const int64_t hidden = config().hidden_size;
  Product(ticket, down_cut_, {workspace_.act, act_width(), row_tiles_}, chunk_tokens_, layer().down,
          layer().down_bias, true, workspace_.x_out + chunk_begin_ * hidden, hidden);
}

void ForwardPass::GateUp(int32_t ticket) {
  const ModelConfig& c = config();
  const int32_t padded = config().intermediate_padded();
  const ProductCut& cut = gate_up_cut_;
  const int32_t row = cut.row_begin(ticket);
  const int32_t col = cut.col_begin(ticket);
  const std::vector<float>& bias = layer().gate_up_bias;
  const GemmRows rows = RowsFor(layer().gate_up, {workspace_.h, c.hidden_size, row_tiles_}, row);
  context_.kernels->Gemm({
      .a = rows.a,
      .lda = rows.lda,
      .a_scales = rows.scales,
      .m = std::min(cut.rows, chunk_tokens_ - row),
      .w = &layer().gate_up,
      .n_begin = col,
      .n_end = std::min(col + cut.cols, padded),
      .bias = bias.empty() ? nullptr : bias.data(),
      .up_begin = padded,
      .out = workspace_.act + size_t(row) * act_width() * t_,
      .ldo = act_width(),
      .out_dtype = context_.weights->dtype,
      .a_tiles = rows.tiles,
      .out_tiles = row_tiles_,
  });
}

}  // namespace skein
