// What ForwardPass hands out, chunk by chunk: logits, a few logits, embeddings, classes.

#include <algorithm>

#include "base/check.h"
#include "model/forward/forward_pass.h"

namespace skein {
namespace {

constexpr int32_t kPanelsPerTicket = 32;  // of labels
constexpr int32_t kMeanCols = 128;        // of a row's mean, summed over all its tokens

}  // namespace

void ForwardPass::CutOutputs() {
  const ModelWeights& w = *context_.weights;
  SKEIN_CHECK(w.output.n() > 0 || (batch_.logit_tokens.empty() && batch_.label_outputs.empty()));
  SKEIN_CHECK(w.head_out.n() > 0 || batch_.classified_rows.empty());
  for (const LabelOutput& output : batch_.label_outputs) {
    SKEIN_CHECK(!output.labels.empty());
    for (const int32_t label : output.labels) SKEIN_CHECK(label >= 0 && label < w.output.n());
  }
  for (const int32_t row : batch_.embedded_rows) {
    SKEIN_CHECK(context_.pooling == Pooling::kLast || batch_.rows[row].begin == 0);
  }
  chunks_.clear();
  const auto cut = [this](OutputKind kind, size_t wanted) {
    const auto end = static_cast<int32_t>(wanted);
    for (int32_t first = 0; first < end; first += limits_.max_logit_rows) {
      chunks_.push_back({kind, first, std::min(limits_.max_logit_rows, end - first)});
    }
  };
  cut(OutputKind::kLogits, batch_.logit_tokens.size());
  cut(OutputKind::kLabels, batch_.label_outputs.size());
  cut(OutputKind::kEmbedding, batch_.embedded_rows.size());
  cut(OutputKind::kClasses, batch_.classified_rows.size());
}

void ForwardPass::BeginChunk() {
  const auto cut = [this](const PackedWeight& w) {
    return CutProduct(Shape(chunk().count, w.n(), w.k(), w.dtype()), context_.team->num_threads());
  };
  output_cut_ = {};
  if (chunk().kind == OutputKind::kLogits) output_cut_ = cut(context_.weights->output);
  if (chunk().kind == OutputKind::kClasses) output_cut_ = cut(context_.weights->head_out);
  if (chunk().kind == OutputKind::kLabels) CutLabels();
  if (PoolsMean()) CutMean();
}

// Neighbours that want the same labels share their products.
void ForwardPass::CutLabels() {
  label_pieces_.clear();
  label_panels_.clear();
  const auto labels = [this](int32_t i) { return batch_.label_outputs[chunk().first + i].labels; };
  for (int32_t begin = 0, end = 0; begin < chunk().count; begin = end) {
    while (end < chunk().count && std::ranges::equal(labels(begin), labels(end))) ++end;
    const auto first_panel = std::ssize(label_panels_);
    for (const int32_t label : labels(begin)) label_panels_.push_back(label / kPanelCols);
    const auto panels = std::span(label_panels_).subspan(first_panel);
    std::ranges::sort(panels);
    const auto surplus = std::ranges::unique(panels);
    label_panels_.resize(label_panels_.size() - surplus.size());
    const auto end_panel = static_cast<int32_t>(label_panels_.size());
    for (auto first = static_cast<int32_t>(first_panel); first < end_panel;
         first += kPanelsPerTicket) {
      label_pieces_.push_back(
          {begin, end - begin, first, std::min(kPanelsPerTicket, end_panel - first)});
    }
  }
}

const float* ForwardPass::output(int32_t i) const {
  SKEIN_CHECK(i >= 0 && i < chunk().count && outputs_taken_);
  return workspace_.logits + i * workspace_.output_width;
}

int32_t ForwardPass::LastToken(int32_t row) const {
  return batch_.rows[row].first_token + batch_.rows[row].num_tokens - 1;
}

// With other pooling than kMean.
int32_t ForwardPass::EmbeddedToken(int32_t row) const {
  return context_.pooling == Pooling::kCls ? batch_.rows[row].first_token : LastToken(row);
}

int32_t ForwardPass::ClassifiedToken(int32_t row) const {
  return config().is_encoder() ? batch_.rows[row].first_token : LastToken(row);
}

// The tokens of the chunk's rows, some for each ticket.
void ForwardPass::CutMean() {
  mean_pieces_.clear();
  for (int32_t i = 0; i < chunk().count; ++i) {
    mean_left_[i].store(MeanTicketsPerRow(), std::memory_order_relaxed);
    const int32_t index = batch_.embedded_rows[chunk().first + i];
    const ForwardRow& row = batch_.rows[index];
    for (int32_t begin = 0; begin < row.num_tokens; begin += kTokensPerTicket) {
      mean_pieces_.push_back(
          {index, row.first_token + begin, std::min(kTokensPerTicket, row.num_tokens - begin)});
    }
  }
}

int32_t ForwardPass::NumFinalNormTickets() const {
  if (PoolsMean()) return static_cast<int32_t>(mean_pieces_.size());
  if (chunk().kind == OutputKind::kEmbedding) return chunk().count;
  return CeilDiv(chunk().count, kTokensPerTicket);
}

void ForwardPass::FinalNorm(int32_t ticket) {
  if (PoolsMean()) {
    // In place: the residual stream of these tokens has served.
    const Piece& piece = mean_pieces_[ticket];
    for (int32_t token = piece.first_token; token < piece.first_token + piece.num_tokens; ++token) {
      FinalNormRow(token, workspace_.x + int64_t{PlaceOf(token)} * config().hidden_size,
                   DType::kF32);
    }
    return;
  }
  if (chunk().kind == OutputKind::kEmbedding) {
    const int32_t row = batch_.embedded_rows[chunk().first + ticket];
    FinalNormRow(EmbeddedToken(row), MutableOutput(ticket), DType::kF32);
    return EmbeddingDense(ticket);
  }
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, chunk().count);
  for (int32_t i = begin; i < end; ++i) NormOutput(i);
  if (chunk().kind == OutputKind::kClasses && context_.weights->head_dense.n() > 0) {
    HeadDense(begin, end);
  }
}

void ForwardPass::NormOutput(int32_t i) {
  const size_t hidden = config().hidden_size;
  const int32_t index = chunk().first + i;
  int32_t token = 0;
  if (chunk().kind == OutputKind::kLogits) {
    token = batch_.logit_tokens[index];
  } else if (chunk().kind == OutputKind::kLabels) {
    token = batch_.label_outputs[index].token;
  } else {
    token = ClassifiedToken(batch_.classified_rows[index]);
  }
  std::byte* h = workspace_.logit_h + i * hidden * t_;
  FinalNormRow(token, h, context_.weights->dtype);
  // A classifier's head is never int8.
  if (int8() && chunk().kind != OutputKind::kClasses) Quantize(i, h, config().hidden_size);
}

void ForwardPass::FinalNormRow(int32_t token, void* out, DType dtype) const {
  const ModelWeights& w = *context_.weights;
  const ModelConfig& c = config();
  const float* x = workspace_.x + int64_t{PlaceOf(token)} * c.hidden_size;
  if (c.is_encoder()) {
    context_.kernels->LayerNorm(x, w.final_norm.data(), w.final_norm_bias.data(), c.layer_norm_eps,
                                c.hidden_size, out, dtype);
  } else {
    context_.kernels->RmsNorm(x, w.final_norm.data(), c.rms_norm_eps, c.hidden_size, out, dtype,
                              kRowPiece);
  }
}

// Puts the outputs [begin, end) of the chunk through the layer before a classifier's last.
void ForwardPass::HeadDense(int32_t begin, int32_t end) {
  const ModelWeights& w = *context_.weights;
  const int64_t hidden = config().hidden_size;
  std::byte* h = workspace_.logit_h + begin * hidden * static_cast<int64_t>(t_);
  // In the outputs' place: those are not computed yet.
  float* sums = MutableOutput(begin);
  const auto width = static_cast<int64_t>(workspace_.output_width);
  context_.kernels->Gemm({
      .a = h,
      .lda = hidden,
      .m = end - begin,
      .w = &w.head_dense,
      .n_begin = 0,
      .n_end = w.head_dense.n(),
      .bias = w.head_dense_bias.data(),
      .out = sums,
      .ldo = width,
  });
  for (int64_t i = 0; i < end - begin; ++i) {
    context_.kernels->Activate(w.head_activation, sums + i * width, config().hidden_size,
                               h + i * hidden * static_cast<int64_t>(t_), w.dtype);
  }
}

void ForwardPass::EmbeddingDense(int32_t i) {
  const DType dtype = context_.weights->dtype;
  std::byte* in = workspace_.logit_h + size_t(i) * workspace_.head_width * t_;
  float* out = MutableOutput(i);
  for (const DenseWeights& dense : context_.weights->embedding_dense) {
    const PackedWeight& w = dense.weight;
    context_.kernels->Convert(out, w.k(), in, dtype);
    context_.kernels->Gemm({
        .a = in,
        .lda = w.k(),
        .m = 1,
        .w = &w,
        .n_begin = 0,
        .n_end = w.n(),
        .bias = dense.bias.empty() ? nullptr : dense.bias.data(),
        .out = out,
        .ldo = w.n(),
    });
    context_.kernels->Activate(dense.activation, out, w.n(), out, DType::kF32);
  }
}

int32_t ForwardPass::MeanTicketsPerRow() const { return CeilDiv(config().hidden_size, kMeanCols); }

void ForwardPass::SumMean(int32_t ticket) {
  const int32_t hidden = config().hidden_size;
  const int32_t i = ticket / MeanTicketsPerRow();
  const int32_t begin = ticket % MeanTicketsPerRow() * kMeanCols;
  const int32_t end = std::min(begin + kMeanCols, hidden);
  const ForwardRow& row = batch_.rows[batch_.embedded_rows[chunk().first + i]];
  float* out = MutableOutput(i);
  std::fill(out + begin, out + end, 0.0f);
  // All of the row's tokens are wanted: they lie in order.
  const float* x = workspace_.x + int64_t{PlaceOf(row.first_token)} * hidden;
  for (int32_t token = 0; token < row.num_tokens; ++token, x += hidden) {
    for (int32_t d = begin; d < end; ++d) out[d] += x[d];
  }
  const auto count = static_cast<float>(row.num_tokens);
  for (int32_t d = begin; d < end; ++d) out[d] /= count;
  // Dense modules need the whole row, parts of which other threads have summed.
  if (mean_left_[i].fetch_sub(1, std::memory_order_acq_rel) == 1) EmbeddingDense(i);
}

int32_t ForwardPass::NumOutputTickets() const {
  if (chunk().kind == OutputKind::kEmbedding) {
    return PoolsMean() ? chunk().count * MeanTicketsPerRow() : 0;
  }
  if (chunk().kind == OutputKind::kLabels) return static_cast<int32_t>(label_pieces_.size());
  return output_cut_.num_tickets();
}

void ForwardPass::Output(int32_t ticket) {
  if (chunk().kind == OutputKind::kLabels) return Labels(ticket);
  if (chunk().kind == OutputKind::kEmbedding) return SumMean(ticket);
  const ModelWeights& w = *context_.weights;
  const auto width = static_cast<int64_t>(workspace_.output_width);
  const auto product = [&](const PackedWeight& weight, const std::vector<float>& bias) {
    Product(ticket, output_cut_, {workspace_.logit_h, config().hidden_size}, chunk().count, weight,
            bias, false, workspace_.logits, width);
  };
  if (chunk().kind == OutputKind::kClasses) return product(w.head_out, w.head_out_bias);
  product(w.output, {});
}

// Computes the panels that hold the labels' rows of the output matrix.
void ForwardPass::Labels(int32_t ticket) {
  const LabelPiece& piece = label_pieces_[ticket];
  const PackedWeight& w = context_.weights->output;
  const GemmRows rows = RowsFor(w, {workspace_.logit_h, config().hidden_size}, piece.first_output);
  for (int32_t i = piece.first_panel; i < piece.first_panel + piece.num_panels; ++i) {
    const int32_t begin = label_panels_[i] * kPanelCols;
    context_.kernels->Gemm({
        .a = rows.a,
        .lda = rows.lda,
        .a_scales = rows.scales,
        .m = piece.num_outputs,
        .w = &w,
        .n_begin = begin,
        .n_end = std::min(begin + kPanelCols, w.n()),
        .out = MutableOutput(piece.first_output),
        .ldo = static_cast<int64_t>(workspace_.output_width),
    });
  }
}

}  // namespace skein
