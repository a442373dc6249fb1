// The operators of ForwardPass that go token by token, and the products.

#include <algorithm>

#include "model/forward_pass.h"

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
    context_.kernels->RmsNorm(x, weight.data(), c.rms_norm_eps, c.hidden_size, out, dtype);
    return;
  }
  context_.kernels->LayerNorm(x, weight.data(), bias.data(), c.layer_norm_eps, c.hidden_size, x,
                              DType::kF32);
  context_.kernels->Convert(x, c.hidden_size, out, dtype);
}

void ForwardPass::Norm(int32_t ticket, const std::vector<float>& weight,
                       const std::vector<float>& bias) {
  const size_t hidden = config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, batch_.num_tokens());
  for (int32_t i = begin; i < end; ++i) {
    std::byte* h = workspace_.h + i * hidden * t_;
    NormRow(weight, bias, workspace_.x + i * hidden, h);
    if (int8()) Quantize(i, h, config().hidden_size);
  }
}

void ForwardPass::Quantize(int64_t i, const std::byte* row, int32_t n) {
  workspace_.scales[i] =
      context_.kernels->Quantize(row, context_.weights->dtype, n, workspace_.quantized + i * n);
}

void ForwardPass::QuantizeTokens(int32_t ticket, const std::byte* a, int64_t lda, int32_t n) {
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, batch_.num_tokens());
  for (int64_t i = begin; i < end; ++i) Quantize(i, a + i * lda * static_cast<int64_t>(t_), n);
}

ForwardPass::GemmRows ForwardPass::RowsFor(const PackedWeight& w, const std::byte* a, int64_t lda,
                                           int64_t row) const {
  if (w.dtype() != DType::kInt8) return {a + row * lda * static_cast<int64_t>(t_), lda, nullptr};
  return {workspace_.quantized + row * w.k(), w.k(), workspace_.scales + row};
}

void ForwardPass::Product(int32_t ticket, const ProductCut& cut, const std::byte* a, int64_t lda,
                          int32_t m, const PackedWeight& w, const std::vector<float>& bias,
                          bool add_to_out, float* out, int64_t ldo) {
  const int64_t row = cut.row_begin(ticket);
  const int32_t col = cut.col_begin(ticket);
  const GemmRows rows = RowsFor(w, a, lda, row);
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
  });
}

void ForwardPass::GateUp(int32_t ticket) {
  const ModelConfig& c = config();
  const int32_t padded = context_.weights->intermediate_padded();
  const ProductCut& cut = gate_up_cut_;
  const int32_t row = cut.row_begin(ticket);
  const int32_t col = cut.col_begin(ticket);
  const std::vector<float>& bias = layer().gate_up_bias;
  const GemmRows rows = RowsFor(layer().gate_up, workspace_.h, c.hidden_size, row);
  context_.kernels->Gemm({
      .a = rows.a,
      .lda = rows.lda,
      .a_scales = rows.scales,
      .m = std::min(cut.rows, batch_.num_tokens() - row),
      .w = &layer().gate_up,
      .n_begin = col,
      .n_end = std::min(col + cut.cols, padded),
      .bias = bias.empty() ? nullptr : bias.data(),
      .up_begin = padded,
      .out = workspace_.act + size_t(row) * padded * t_,
      .ldo = padded,
      .out_dtype = context_.weights->dtype,
  });
}

}  // namespace skein
