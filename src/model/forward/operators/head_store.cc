#include "model/forward/operators/head_store.h"

#include <algorithm>

namespace skein {
namespace {

const RopeAngles* RopeOf(const PassState& pass, int32_t layer) {
  if (!pass.config().Rotates(layer)) return nullptr;
  return pass.config().IsLocal(layer) ? pass.context.local_rope : pass.context.rope;
}

}  // namespace

HeadStore::HeadStore(PassState& pass, int32_t layer)
    : pass_(pass),
      layer_(pass.weights().layers[layer]),
      rope_(RopeOf(pass, layer)),
      rotary_dim_(RotaryDim(pass.config().rope, pass.config().head_dim)),
      norms_(pass.config().decoder.qk_norm && !pass.config().decoder.qk_norm_spans_heads),
      blocks_(pass, layer) {}

void HeadStore::Store(const Bounds& rows, const Bounds& cols, int32_t first, const float* x,
                      int64_t ld) const {
  const int32_t begin = first + rows.begin, end = first + rows.end;
  const auto spans = pass_.layout.block_spans();
  auto span = std::ranges::upper_bound(spans, begin, {}, &RowSpan::first) - 1;
  for (int32_t token = begin; token < end; ++token, x += ld) {
    if (token == span->first + span->count) ++span;
    StoreToken(*span, token, cols, x);
  }
}

void HeadStore::StoreToken(const RowSpan& span, int32_t token, const Bounds& cols,
                           const float* x) const {
  const ModelConfig& c = pass_.config();
  const Kernels& kernels = pass_.kernels();
  const KvLayout& layout = pass_.context.kv_layout;
  const int32_t q_width = pass_.q_width();
  const int32_t position = pass_.layout.Position(span.row, token);
  const int32_t slot = position % kKvBlockTokens;
  RotateCall call = {.eps = c.decoder.rms_norm_eps,
                     .head_dim = c.head_dim,
                     .rotary_dim = rotary_dim_,
                     .dtype = pass_.weights().dtype};
  if (rope_ != nullptr) {
    const int32_t rope_position = pass_.layout.RopePosition(span.row, token);
    call.cos = rope_->cos(rope_position);
    call.sin = rope_->sin(rope_position);
  }
  if (cols.begin < q_width) {
    call.x = x;
    call.norm = norms_ ? layer_.q_norm.data() : nullptr;
    call.num_heads = (std::min(cols.end, q_width) - cols.begin) / c.head_dim;
    call.out = pass_.At(pass_.workspace.q_out, token, cols.begin, q_width);
    call.piece_stride = pass_.piece_stride();
    kernels.Rotate(call);
  }
  call.piece_stride = kRowPiece;
  call.norm = norms_ ? layer_.k_norm.data() : nullptr;
  call.num_heads = 1;
  if (layout.dtype == DType::kInt8) call.dtype = DType::kF32;
  std::byte* const kv = blocks_.StoreBlock(span);
  const int32_t kv_begin = std::max(cols.begin, q_width);
  for (int32_t col = kv_begin; col < cols.end; col += c.head_dim) {
    const int32_t head = (col - q_width) / c.head_dim;  // head of k, then of v
    call.x = x + (col - cols.begin);
    if (head < c.num_kv_heads) {
      StoreK(call, kv + head * layout.head_stride(), slot);
    } else {
      StoreV(call.x, kv + (head - c.num_kv_heads) * layout.head_stride(), slot);
    }
  }
}

void HeadStore::StoreK(RotateCall call, std::byte* base, int32_t slot) const {
  alignas(64) float rotated[kMaxHeadDim];
  const KvLayout& layout = pass_.context.kv_layout;
  call.out = rotated;
  pass_.kernels().Rotate(call);
  if (layout.dtype != DType::kInt8) return layout.StoreK(base, slot, rotated);
  const int32_t padded = layout.head_dim_padded();
  std::fill(rotated + layout.head_dim, rotated + padded, 0.0f);
  int8_t q[kMaxHeadDim];
  RowBlock blocks[kMaxHeadDim / kBlockTerms];
  pass_.kernels().QuantizeBlocks(rotated, DType::kF32, padded, q, blocks);
  float scales[kMaxHeadDim / kBlockTerms];
  for (int32_t i = 0; i < padded / kBlockTerms; ++i) scales[i] = blocks[i].scale;
  layout.StoreInt8K(base, slot, q, scales);
}

void HeadStore::StoreV(const float* v, std::byte* base, int32_t slot) const {
  alignas(64) std::byte rounded[kMaxHeadDim * sizeof(float)];
  const KvLayout& layout = pass_.context.kv_layout;
  if (layout.dtype == DType::kInt8) {
    auto* const q = reinterpret_cast<int8_t*>(rounded);
    const float scale = pass_.kernels().Quantize(v, DType::kF32, layout.head_dim, q);
    return layout.StoreInt8V(base, slot, q, scale);
  }
  pass_.kernels().Convert(v, layout.head_dim, rounded, layout.dtype);
  layout.StoreV(base, slot, rounded);
}

}  // namespace skein
