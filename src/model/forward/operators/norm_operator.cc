#include "model/forward/operators/norm_operator.h"

#include <algorithm>

namespace skein {

NormOperator::NormOperator(PassState& pass, const NormSpec& spec) : RowOperator(pass), spec_(spec) {
  if (spec.zeroes_layer) zeroes_.emplace(pass, *spec.zeroes_layer);
}

void NormOperator::RunRows(int32_t begin, int32_t end) {
  const int32_t hidden = pass_.config().hidden_size;
  float* const x = pass_.workspace.*spec_.x;
  for (int32_t i = begin; i < end; ++i) {
    std::byte* h = pass_.At(pass_.workspace.h, i, 0, hidden);
    NormRow(x + size_t(range_.first + i) * hidden, range_.first + i, h);
    if (pass_.int8()) pass_.Quantize(i, h, hidden);
  }
  if (zeroes_) zeroes_->ZeroFresh(range_.first + begin, range_.first + end);
}

void NormOperator::NormRow(float* x, int32_t active, std::byte* out) const {
  const ModelConfig& c = pass_.config();
  const DType dtype = pass_.weights().dtype;
  if (spec_.weight.empty()) {
    for (int32_t begin = 0; begin < c.hidden_size; begin += kRowPiece) {
      pass_.kernels().Convert(x + begin, std::min(kRowPiece, c.hidden_size - begin),
                              out + PieceIndex(begin, pass_.piece_stride()) * pass_.t, dtype);
    }
    return;
  }
  if (!c.is_encoder()) {
    pass_.kernels().RmsNorm(x, spec_.weight.data(), c.decoder.rms_norm_eps, c.hidden_size, out,
                            dtype, pass_.piece_stride());
    return;
  }
  void* const normed = spec_.replaces_x ? static_cast<void*>(x) : out;
  pass_.kernels().LayerNorm(x, spec_.weight.data(), spec_.bias.data(), spec_.eps, c.hidden_size,
                            normed, spec_.replaces_x ? DType::kF32 : dtype);
  if (spec_.type_embedding != nullptr) AddType(active, x);
  if (spec_.replaces_x) pass_.kernels().Convert(x, c.hidden_size, out, dtype);
}

void NormOperator::AddType(int32_t token, float* x) const {
  const auto& rows = pass_.batch.rows;
  const auto row = std::ranges::upper_bound(rows, token, {}, &ForwardRow::first_token) - 1;
  const int32_t hidden = pass_.config().hidden_size;
  const float* const type = spec_.type_embedding->data() + int64_t{row->question_type} * hidden;
  for (int32_t d = 0; d < hidden; ++d) x[d] += type[d];
}

}  // namespace skein
