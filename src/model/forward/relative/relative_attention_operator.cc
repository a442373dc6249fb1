#include "model/forward/relative/relative_attention_operator.h"

#include <algorithm>
#include <cmath>

#include "base/ceil_div.h"
#include "base/check.h"

namespace skein {
namespace {

constexpr int32_t kMostRows = 32;           // that attend together
constexpr int32_t kMostTerms = 1024;        // rows of the table
constexpr int32_t kTermsOfCall = 32 << 10;  // elements

// The number of a row's terms: whole blocks of keys.
int32_t PaddedKeys(int32_t num_keys) { return CeilDiv(num_keys, kKvBlockTokens) * kKvBlockTokens; }

}  // namespace

RelativeAttentionOperator::RelativeAttentionOperator(PassState& pass, int32_t layer)
    : pass_(pass),
      layer_(pass.weights().layers[layer]),
      blocks_(pass, layer),
      scale_(static_cast<float>(1.0 / std::sqrt(3.0 * pass.config().head_dim))) {
  SKEIN_CHECK(pass.config().bidirectional && pass.config().num_kv_heads == pass.config().num_heads);
  SKEIN_CHECK(pass.config().encoder.relative.num_rows() <= kMostTerms && !pass.row_tiles);
}

int32_t RelativeAttentionOperator::Begin(OperatorRange) {
  pass_.tiles.Update();
  return static_cast<int32_t>(pass_.tiles.tiles().size()) * pass_.config().num_heads;
}

void RelativeAttentionOperator::Run(int32_t ticket) {
  const auto num_tiles = static_cast<int32_t>(pass_.tiles.tiles().size());
  const AttentionTile& tile = pass_.tiles.tiles()[ticket % num_tiles];
  for (const RowSpan& span : pass_.tiles.spans().subspan(tile.first_span, tile.num_spans)) {
    const int32_t num_terms = PaddedKeys(pass_.batch.rows[span.row].num_tokens);
    SKEIN_CHECK(num_terms <= kTermsOfCall);
    const int32_t most = std::min(kMostRows, kTermsOfCall / num_terms);
    for (int32_t first = 0; first < span.count; first += most) {
      Attend({span.row, span.first + first, std::min(most, span.count - first)},
             ticket / num_tiles);
    }
  }
}

void RelativeAttentionOperator::QueryTerms(const RowSpan& span, int32_t head, float* out) const {
  const ModelConfig& c = pass_.config();
  const int32_t num_rows = c.encoder.relative.num_rows();
  const int64_t column = int64_t{head} * c.head_dim;
  pass_.kernels().Gemm({.a = pass_.At(pass_.workspace.q, span.first, column, pass_.q_width()),
                        .lda = pass_.q_width(),
                        .m = span.count,
                        .w = &layer_.distance_keys,
                        .n_begin = head * num_rows,
                        .n_end = (head + 1) * num_rows,
                        .out = out,
                        .ldo = num_rows,
                        .out_begin = head * num_rows});
}

void RelativeAttentionOperator::Attend(const RowSpan& span, int32_t head) const {
  const ModelConfig& c = pass_.config();
  const ForwardRow& row = pass_.batch.rows[span.row];
  const int32_t num_rows = c.encoder.relative.num_rows(), num_terms = PaddedKeys(row.num_tokens);
  alignas(64) float query_terms[kMostRows * kMostTerms];
  alignas(64) float terms[kTermsOfCall];
  QueryTerms(span, head, query_terms);
  for (int32_t key = 0; key < row.num_tokens; ++key) {
    const float* const key_terms = pass_.KeyTerms(head, row.first_token + key);
    for (int32_t i = 0; i < span.count; ++i) {
      const int32_t at = pass_.relative_rows->Of(PositionOf(span, i) - key);
      terms[i * num_terms + key] = query_terms[i * num_rows + at] + key_terms[at];
    }
  }
  const std::span<const int32_t> table = pass_.layout.Table(span.row);
  AttentionRow rows[kMostRows];
  for (int32_t i = 0; i < span.count; ++i) {
    std::fill(terms + i * num_terms + row.num_tokens, terms + (i + 1) * num_terms, 0.0f);
    const int64_t column = int64_t{head} * c.head_dim;
    rows[i] = {.q = pass_.At(pass_.workspace.q, span.first + i, column, pass_.q_width()),
               .out = pass_.At(pass_.workspace.attn, span.first + i, column, pass_.q_width()),
               .num_keys = std::min(row.num_tokens, row.num_attended),
               .num_blocks = static_cast<int32_t>(table.size()),
               .block_table = table.data(),
               .terms = terms + i * num_terms};
  }
  const KvLayout& layout = pass_.context.kv_layout;
  pass_.kernels().Attention({.rows = std::span(rows, span.count),
                             .kv = blocks_.Cache(head),
                             .own_kv = pass_.workspace.own_kv + head * layout.head_bytes(),
                             .layout = &layout,
                             .scale = scale_});
}

}  // namespace skein
