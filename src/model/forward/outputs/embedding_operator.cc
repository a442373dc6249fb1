#include "model/forward/outputs/embedding_operator.h"

#include <algorithm>

#include "model/forward/outputs/final_norm.h"

namespace skein {
namespace {

constexpr int32_t kMeanCols = 128;  // columns of a ticket, which adds all tokens of a row

}  // namespace

EmbeddingOperator::EmbeddingOperator(PassState& pass, EmbeddingStage stage, OutputKind kind)
    : pass_(pass),
      stage_(stage),
      kind_(kind),
      mean_left_(stage == EmbeddingStage::kMean ? pass.limits.max_logit_rows : 0) {
  if (stage == EmbeddingStage::kNorm) norm_spans_.reserve(pass.limits.max_tokens);
}

std::string_view EmbeddingOperator::name() const {
  switch (stage_) {
    case EmbeddingStage::kToken:
      return "embedding_token";
    case EmbeddingStage::kNorm:
      return "embedding_norm";
    case EmbeddingStage::kMean:
      break;
  }
  return "embedding_mean";
}

int32_t EmbeddingOperator::Begin(OperatorRange range) {
  range_ = range;
  switch (stage_) {
    case EmbeddingStage::kToken:
      return range.count;
    case EmbeddingStage::kNorm:
      return BeginNorm();
    case EmbeddingStage::kMean:
      break;
  }
  return BeginMean();
}

int32_t EmbeddingOperator::BeginNorm() {
  norm_spans_.clear();
  for (int32_t i = 0; i < range_.count; ++i) {
    const ForwardRow& row = pass_.batch.rows[RowOf(i)];
    for (int32_t begin = 0; begin < row.num_tokens; begin += kTokensPerTicket) {
      norm_spans_.push_back(
          {RowOf(i), row.first_token + begin, std::min(kTokensPerTicket, row.num_tokens - begin)});
    }
  }
  return static_cast<int32_t>(norm_spans_.size());
}

int32_t EmbeddingOperator::BeginMean() {
  for (int32_t i = 0; i < range_.count; ++i) {
    mean_left_[i].store(MeanTicketsPerRow(), std::memory_order_relaxed);
  }
  return range_.count * MeanTicketsPerRow();
}

int32_t EmbeddingOperator::RowOf(int32_t i) const {
  const ForwardBatch& batch = pass_.batch;
  const bool classes = kind_ == OutputKind::kClasses;
  return (classes ? batch.classified_rows : batch.embedded_rows)[range_.first + i];
}

int32_t EmbeddingOperator::MeanTicketsPerRow() const {
  return CeilDiv(pass_.config().hidden_size, kMeanCols);
}

void EmbeddingOperator::Run(int32_t ticket) {
  if (stage_ == EmbeddingStage::kNorm) return Norm(norm_spans_[ticket]);
  if (stage_ == EmbeddingStage::kMean) {
    const int32_t begin = ticket % MeanTicketsPerRow() * kMeanCols;
    return Mean(ticket / MeanTicketsPerRow(), begin,
                std::min(begin + kMeanCols, pass_.config().hidden_size));
  }
  const int32_t token = pass_.layout.OutputToken(kind_, range_.first + ticket);
  FinalNormRow(pass_, token, pass_.Output(ticket), DType::kF32);
  const bool projects = pass_.config().head == Head::kTokenVectors;
  if (kind_ == OutputKind::kEmbedding || projects) Dense(ticket);
}

// Norms in place: no later operator reads the residual stream of these tokens.
void EmbeddingOperator::Norm(const RowSpan& span) {
  for (int32_t token = span.first; token < span.first + span.count; ++token) {
    const int64_t active = pass_.layout.ActiveIndex(token);
    FinalNormRow(pass_, token, pass_.workspace.x + active * pass_.config().hidden_size,
                 DType::kF32);
  }
}

// Writes the mean of columns [begin, end) of output i.
void EmbeddingOperator::Mean(int32_t i, int32_t begin, int32_t end) {
  const int32_t hidden = pass_.config().hidden_size;
  const ForwardRow& row = pass_.batch.rows[RowOf(i)];
  float* out = pass_.Output(i);
  std::fill(out + begin, out + end, 0.0f);
  // All tokens of the row are output tokens, so they are active and adjacent.
  const float* x = pass_.workspace.x + int64_t{pass_.layout.ActiveIndex(row.first_token)} * hidden;
  for (int32_t token = 0; token < row.num_tokens; ++token, x += hidden) {
    for (int32_t d = begin; d < end; ++d) out[d] += x[d];
  }
  const auto count = static_cast<float>(row.num_tokens);
  for (int32_t d = begin; d < end; ++d) out[d] /= count;
  if (mean_left_[i].fetch_sub(1, std::memory_order_acq_rel) == 1) Pooled(i);
}

void EmbeddingOperator::Pooled(int32_t i) {
  if (kind_ == OutputKind::kEmbedding) return Dense(i);
  const int32_t hidden = pass_.config().hidden_size;
  std::byte* const h = pass_.workspace.logit_h + size_t(i) * hidden * pass_.t;
  pass_.kernels().Convert(pass_.Output(i), hidden, h, pass_.weights().dtype);
}

void EmbeddingOperator::Dense(int32_t i) {
  const DType dtype = pass_.weights().dtype;
  const auto in_width = static_cast<int64_t>(pass_.workspace.head_width);
  std::byte* in = pass_.workspace.logit_h + i * in_width * static_cast<int64_t>(pass_.t);
  float* out = pass_.Output(i);
  for (const DenseWeights& dense : pass_.weights().embedding_dense) {
    const PackedWeight& w = dense.weight;
    pass_.kernels().Convert(out, w.k(), in, dtype);
    pass_.kernels().Gemm({
        .a = in,
        .lda = w.k(),
        .m = 1,
        .w = &w,
        .n_begin = 0,
        .n_end = w.n(),
        .bias = dense.bias.empty() ? nullptr : dense.bias.data(),
        .activation = dense.activation,
        .out = out,
        .ldo = w.n(),
    });
  }
}

}  // namespace skein
