#include "model/forward/pass_state.h"

#include <algorithm>

#include "base/check.h"

namespace skein {
namespace {

ForwardLimits WithWeights(ForwardLimits limits, const ForwardContext& context) {
  const ModelWeights& weights = *context.weights;
  limits.dense_width = weights.dense_width();
  limits.int8 = TakesInt8Rows(weights.matrix_dtype);
  limits.int8_kv = context.kv_layout.dtype == DType::kInt8;
  limits.lora_rank = 0;
  if (context.adapters != nullptr) limits.lora_rank = WidestRank(*context.adapters);
  return limits;
}

// Whether rows can be in tiles: chunks and heads must begin tiles.
bool UseRowTiles(const ForwardContext& context, const ForwardLimits& limits) {
  const ModelWeights& w = *context.weights;
  const ModelConfig& c = w.config;
  const bool whole = limits.chunk() == limits.max_tokens || limits.chunk() % kRowTileRows == 0;
  const Isa isa = context.kernels->isa();
  return NumericClassOf(isa, w.dtype) == NumericClass::kAmx && w.matrix_dtype == w.dtype &&
         !c.is_encoder() && c.num_experts == 0 && whole && c.hidden_size % kRowPiece == 0 &&
         c.head_dim % kRowPiece == 0 && RotaryDim(c.rope, c.head_dim) % kRowPiece == 0 &&
         c.decoder.linear.v_width() % kRowPiece == 0;
}

}  // namespace

PassState::PassState(const ForwardContext& forward_context, const ForwardLimits& forward_limits)
    : context(forward_context),
      limits(WithWeights(forward_limits, forward_context)),
      t(SizeOf(context.weights->dtype)),
      row_tiles(UseRowTiles(context, limits)),
      workspace(config(), weights().dtype, limits),
      layout(context, limits, batch),
      tiles(context, limits, batch, layout, 0),
      local_tiles(context, limits, batch, layout, config().local.window()),
      relative_rows(
          config().encoder.relative.span == 0
              ? nullptr
              : std::make_unique<RelativeRows>(config().encoder.relative, limits.max_tokens)),
      distance_bias(weights().distance_bias.empty()
                        ? nullptr
                        : std::make_unique<DistanceBias>(
                              config().encoder.relative_bias, weights().distance_bias,
                              std::min(limits.max_tokens, config().max_position))),
      expert_routes(config(), limits.chunk()),
      expert_gate_up(config().num_experts),
      expert_down(config().num_experts) {
  SKEIN_CHECK(limits.max_tokens >= 1 && limits.max_logit_rows >= 1 && limits.max_own_blocks >= 0);
  const KvLayout& kv = context.kv_layout;
  SKEIN_CHECK(limits.max_own_blocks == 0 || !kv.contiguous);
  SKEIN_CHECK(kv.dtype == weights().dtype || (kv.dtype == DType::kInt8 && !config().is_encoder()));
  SKEIN_CHECK(kv.num_layers == config().num_kv_layers());
  SKEIN_CHECK(kv.num_kv_heads == config().num_kv_heads && kv.head_dim == config().head_dim);
  const size_t tokens = limits.max_tokens;
  batch.tokens.reserve(tokens);
  batch.rows.reserve(tokens);
  batch.logit_tokens.reserve(tokens);
  batch.label_outputs.reserve(tokens);
  batch.embedded_rows.reserve(tokens);
  batch.classified_rows.reserve(tokens);
  batch.sparse_tokens.reserve(config().head == Head::kMaskedLanguageModel ? tokens : 0);
  const bool decides = config().head == Head::kDecision;
  batch.marker_tokens.reserve(decides ? tokens : 0);
  batch.action_rows.reserve(decides ? tokens : 0);
  batch.decided_rows.reserve(decides ? tokens : 0);
}

int32_t PassState::act_width(int32_t layer) const {
  const int32_t padded = Padded(config().MlpSize(layer));
  return row_tiles ? CeilDiv(padded, kRowPiece) * kRowPiece : padded;
}

ProductShape PassState::Shape(int32_t n, int32_t k, DType dtype) const {
  return {.n = n, .k = k, .element_bytes = SizeOf(dtype), .unit = UnitOf(kernels().isa(), dtype)};
}

GemmCall PassState::CallOn(const PackedWeight& w, const Operand& a, int32_t first,
                           int64_t row) const {
  const QuantizedRows& int8_rows = workspace.*a.int8_rows;
  if (w.dtype() == DType::kInt8) {
    return {.a = int8_rows.values + row * w.k(),
            .lda = w.k(),
            .a_scales = int8_rows.scales + row,
            .w = &w};
  }
  if (w.dtype() == DType::kBlocks) {
    return {.a = int8_rows.values + row * w.k(),
            .lda = w.k(),
            .a_blocks = int8_rows.blocks + row * (w.k() / kBlockTerms),
            .w = &w};
  }
  // The first row of a tile has the same offset as without tiles.
  const int64_t from = (a.of_batch ? first : 0) + row;
  return {.a = workspace.*a.matrix + from * a.width * static_cast<int64_t>(t),
          .lda = a.width,
          .w = &w,
          .a_tiles = a.tiles};
}

const LoraPair* PassState::LoraOf(LoraProduct product, int32_t layer, int32_t active) const {
  const int32_t adapter = layout.has_adapters() ? layout.AdapterAt(active) : 0;
  if (adapter == 0) return nullptr;
  const LoraPair& pair = (*context.adapters)[adapter - 1].layers[layer].of(product);
  return pair.rank() == 0 ? nullptr : &pair;
}

void PassState::AddLora(LoraProduct product, int32_t layer, int32_t first, int32_t row,
                        const GemmCall& call) const {
  if (!layout.has_adapters()) return;
  for (int32_t i = 0, end = 0; i < call.m; i = end) {
    const LoraPair* const pair = LoraOf(product, layer, first + row + i);
    end = i + 1;
    while (end < call.m && LoraOf(product, layer, first + row + end) == pair) ++end;
    if (pair == nullptr) continue;
    kernels().Gemm({.a = workspace.lora + int64_t{row + i} * limits.lora_rank,
                    .lda = limits.lora_rank,
                    .m = end - i,
                    .w = &pair->b,
                    .n_begin = call.n_begin,
                    .n_end = call.n_end,
                    .add_to_out = true,
                    .out = static_cast<float*>(call.out) + i * call.ldo,
                    .ldo = call.ldo,
                    .out_begin = call.out_begin});
  }
}

void PassState::FinishLogits(const GemmCall& call) const {
  const float divisor = config().decoder.logits_divisor, cap = config().decoder.logits_cap;
  const int32_t begin = call.n_begin - call.out_begin, count = call.n_end - call.n_begin;
  for (int32_t i = 0; i < call.m; ++i) {
    float* const row = static_cast<float*>(call.out) + i * call.ldo + begin;
    if (divisor != 1) {
      for (int32_t n = 0; n < count; ++n) row[n] /= divisor;
    }
    if (cap > 0) kernels().SoftCap(row, count, cap);
  }
}

void PassState::Quantize(int64_t i, const std::byte* row, int32_t n, const QuantizedRows& to) {
  int8_t* const out = to.values + i * n;
  if (weights().matrix_dtype == DType::kInt8) {
    to.scales[i] = kernels().Quantize(row, weights().dtype, n, out);
  } else if (n % kBlockTerms == 0) {  // rows of other widths multiply no matrix of blocks
    kernels().QuantizeBlocks(row, weights().dtype, n, out, to.blocks + i * (n / kBlockTerms));
  }
}

void PassState::CopyQuantized(int64_t i, int32_t n, int64_t to_row, const QuantizedRows& to) const {
  const QuantizedRows& from = workspace.quantized;
  std::copy_n(from.values + i * n, n, to.values + to_row * n);
  if (weights().matrix_dtype == DType::kInt8) {
    to.scales[to_row] = from.scales[i];
  } else if (n % kBlockTerms == 0) {
    const int64_t count = n / kBlockTerms;
    std::copy_n(from.blocks + i * count, count, to.blocks + to_row * count);
  }
}

}  // namespace skein
