#include "model/forward/outputs/compact_head_operator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/dtype.h"
#include "model/forward/outputs/final_norm.h"

namespace skein {
namespace {

constexpr float kEps = 1e-5f;  // epsilon of the LayerNorms
constexpr int64_t kQkvFactor = 3, kMlpWidthFactor = 4, kProjections = 2;
constexpr std::string_view kStageNames[] = {
    "head_read",  "head_in",         "head_input_norm", "head_attn_norm", "head_qkv",
    "head_store", "head_attention",  "head_o",          "head_mlp_norm",  "head_up",
    "head_down",  "head_final_norm", "head_summary",    "head_option",    "head_score"};

// The weight of a stage that is a product, else null.
const BiasedWeight* WeightOf(const CompactHeadWeights& head, CompactStage stage, int32_t layer) {
  const auto of_layer = [&]() -> const CompactHeadLayer& {
    return head.layers[static_cast<size_t>(layer)];
  };
  switch (stage) {
    case CompactStage::kIn:
      return &head.in;
    case CompactStage::kQkv:
      return &of_layer().qkv;
    case CompactStage::kOut:
      return &of_layer().o;
    case CompactStage::kUp:
      return &of_layer().up;
    case CompactStage::kDown:
      return &of_layer().down;
    case CompactStage::kSummary:
      return &head.summary;
    case CompactStage::kOption:
      return &head.option;
    default:
      return nullptr;
  }
}

ProductShape ShapeOf(const PassState& pass, CompactStage stage, int32_t layer) {
  const BiasedWeight* const w = WeightOf(pass.weights().compact_head, stage, layer);
  return w == nullptr ? pass.Shape(1, 1, DType::kF32)
                      : pass.Shape(w->weight.n(), w->weight.k(), DType::kF32);
}

}  // namespace

CompactHeadOperator::CompactHeadOperator(PassState& pass, CompactStage stage, int32_t layer)
    : pass_(pass),
      stage_(stage),
      layer_(layer),
      kv_layout_(CompactKvLayout(pass.config(), pass.limits)),
      cutter_(pass.Cutter(ShapeOf(pass, stage, layer))) {
  questions_.reserve(static_cast<size_t>(pass.limits.max_logit_rows));
  question_of_row_.reserve(static_cast<size_t>(CompactRowsMax(pass.limits)));
  if (stage != CompactStage::kAttend) return;
  block_ids_.resize(static_cast<size_t>(kv_layout_.num_blocks));
  std::iota(block_ids_.begin(), block_ids_.end(), 0);
}

std::string_view CompactHeadOperator::name() const {
  return kStageNames[static_cast<size_t>(stage_)];
}

int32_t CompactHeadOperator::Begin(OperatorRange range) {
  questions_.clear();
  question_of_row_.clear();
  int32_t row = 0, block = 0;
  for (int32_t i = 0; i < range.count; ++i) {
    const int32_t index = range.first + i;
    const int32_t count = pass_.batch.decided_rows[index].num_markers + kCompactExtraRows;
    questions_.push_back({index, row, count, block});
    question_of_row_.insert(question_of_row_.end(), count, i);
    row += count;
    block += CeilDiv(count, kKvBlockTokens);
  }
  if (WeightOf(weights(), stage_, layer_) != nullptr) {
    cut_ = cutter_.Cut(row);
    return cut_.num_tickets();
  }
  if (stage_ == CompactStage::kAttend) return range.count * kv_layout_.num_kv_heads;
  if (stage_ == CompactStage::kScore) return range.count;
  return CeilDiv(row, kTokensPerTicket);
}

void CompactHeadOperator::Run(int32_t ticket) {
  if (WeightOf(weights(), stage_, layer_) != nullptr) return RunProduct(ticket);
  if (stage_ == CompactStage::kAttend) {
    const int32_t heads = kv_layout_.num_kv_heads;
    return Attend(questions_[static_cast<size_t>(ticket / heads)], ticket % heads);
  }
  if (stage_ == CompactStage::kScore) return Score(questions_[static_cast<size_t>(ticket)]);
  const int32_t begin = ticket * kTokensPerTicket;
  const auto rows = static_cast<int32_t>(question_of_row_.size());
  for (int32_t row = begin; row < std::min(begin + kTokensPerTicket, rows); ++row) {
    const Question& question =
        questions_[static_cast<size_t>(question_of_row_[static_cast<size_t>(row)])];
    RunRow(question, row - question.first);
  }
}

CompactHeadOperator::Product CompactHeadOperator::ProductOf() const {
  const CompactHeadRows& rows = pass_.workspace.head.compact;
  const int64_t w = width();
  const BiasedWeight* const weight = WeightOf(weights(), stage_, layer_);
  const float* const projected = pass_.config().decision.is_pointer ? rows.states : rows.h;
  switch (stage_) {
    case CompactStage::kIn:
      return {weight, rows.states, rows.x, w, false};
    case CompactStage::kQkv:
      return {weight, rows.h, rows.wide, kQkvFactor * w, false};
    case CompactStage::kUp:
      return {weight, rows.h, rows.wide, kMlpWidthFactor * w, false, Activation::kGelu};
    case CompactStage::kDown:
      return {weight, rows.wide, rows.x, w, true};
    case CompactStage::kSummary:
      return {weight, projected, rows.wide, kProjections * w, false};
    case CompactStage::kOption:
      return {weight, projected, rows.wide + w, kProjections * w, false};
    default:
      return {weight, rows.h, rows.x, w, true};  // kOut
  }
}

void CompactHeadOperator::RunProduct(int32_t ticket) {
  const Product product = ProductOf();
  const PackedWeight& weight = product.weight->weight;
  const int32_t row = cut_.row_begin(ticket), col = cut_.col_begin(ticket);
  GemmCall call = {.a = product.in + int64_t{row} * weight.k(), .lda = weight.k(), .w = &weight};
  call.m = std::min(cut_.rows, static_cast<int32_t>(question_of_row_.size()) - row);
  call.n_begin = col;
  call.n_end = std::min(col + cut_.cols, weight.n());
  call.bias = product.weight->bias.data();
  call.add_to_out = product.adds;
  call.activation = product.activation;
  call.out = product.out + row * product.ldo;
  call.ldo = product.ldo;
  pass_.kernels().Gemm(call);
}

// Runs a stage that works row by row on one row of a question.
void CompactHeadOperator::RunRow(const Question& question, int32_t slot) {
  const CompactHeadRows& rows = pass_.workspace.head.compact;
  const int32_t row = question.first + slot;
  float* const x = Row(rows.x, row, width());
  float* const h = Row(rows.h, row, width());
  switch (stage_) {
    case CompactStage::kRead:
      return Read(question, slot);
    case CompactStage::kInputNorm:
      return InputNorm(question, slot);
    case CompactStage::kAttnNorm:
      return RunNorm(layer().attn_norm, x, h);
    case CompactStage::kStore:
      return Store(question, slot);
    case CompactStage::kMlpNorm:
      return RunNorm(layer().mlp_norm, x, h);
    default:
      return RunNorm(weights().final_norm, x, h);  // kFinalNorm
  }
}

void CompactHeadOperator::RunNorm(const LayerNormWeights& norm, const float* from,
                                  float* to) const {
  pass_.kernels().LayerNorm(from, norm.weight.data(), norm.bias.data(), kEps, width(), to,
                            DType::kF32);
}

// Reads the states of a question. The row of the type stays 0, since its product is not used.
void CompactHeadOperator::Read(const Question& question, int32_t slot) {
  const int32_t hidden = pass_.config().hidden_size;
  float* const to = Row(pass_.workspace.head.compact.states, question.first + slot, hidden);
  if (slot == 0) {
    std::fill_n(to, hidden, 0.0f);
    return;
  }
  const DecidedRow& row = pass_.batch.decided_rows[static_cast<size_t>(question.index)];
  const bool summary = slot + 1 == question.count;
  const int32_t token =
      summary ? row.summary_token
              : pass_.batch.marker_tokens[static_cast<size_t>(row.first_marker + slot - 1)];
  FinalNormRow(pass_, token, to, DType::kF32);
  if (!pass_.config().decision.rounds_states) return;
  for (int32_t i = 0; i < hidden; ++i) to[i] = ToFloat(ToBf16(to[i]));
}

void CompactHeadOperator::InputNorm(const Question& question, int32_t slot) {
  float* const x = Row(pass_.workspace.head.compact.x, question.first + slot, width());
  const DecidedRow& row = pass_.batch.decided_rows[static_cast<size_t>(question.index)];
  const int32_t type = pass_.batch.rows[static_cast<size_t>(row.row)].question_type;
  const float* const from =
      slot == 0 ? weights().type_embedding.data() + int64_t{type} * width() : x;
  RunNorm(weights().input_norm, from, x);
}

void CompactHeadOperator::Store(const Question& question, int32_t slot) {
  const CompactHeadRows& rows = pass_.workspace.head.compact;
  const float* const k = Row(rows.wide, question.first + slot, kQkvFactor * width()) + width();
  const int32_t block = question.first_block + slot / kKvBlockTokens;
  for (int32_t head = 0; head < kv_layout_.num_kv_heads; ++head) {
    std::byte* const to = rows.kv + kv_layout_.Offset(0, block, head);
    const int64_t column = int64_t{head} * kv_layout_.head_dim;
    kv_layout_.StoreK(to, slot % kKvBlockTokens, k + column);
    kv_layout_.StoreV(to, slot % kKvBlockTokens, k + width() + column);
  }
}

void CompactHeadOperator::Attend(const Question& question, int32_t head) {
  const CompactHeadRows& rows = pass_.workspace.head.compact;
  const int64_t column = int64_t{head} * kv_layout_.head_dim;
  AttentionRow tile[kMaxQueryRows];
  for (int32_t begin = 0; begin < question.count; begin += kMaxQueryRows) {
    const int32_t count = std::min(kMaxQueryRows, question.count - begin);
    for (int32_t i = 0; i < count; ++i) {
      const int32_t row = question.first + begin + i;
      tile[i] = {Row(rows.wide, row, kQkvFactor * width()) + column,
                 Row(rows.h, row, width()) + column, question.count,
                 CeilDiv(question.count, kKvBlockTokens), block_ids_.data() + question.first_block};
    }
    pass_.kernels().Attention(
        {.rows = {tile, static_cast<size_t>(count)},
         .kv = rows.kv + kv_layout_.Offset(0, 0, head),
         .layout = &kv_layout_,
         .scale = static_cast<float>(1 / std::sqrt(double(kv_layout_.head_dim)))});
  }
}

void CompactHeadOperator::Score(const Question& question) {
  const CompactHeadRows& rows = pass_.workspace.head.compact;
  const int64_t ld = kProjections * width();
  const float* const summary = Row(rows.wide, question.first + question.count - 1, ld);
  const double scale = 1 / std::sqrt(static_cast<double>(width()));
  const auto output = static_cast<int64_t>(&question - questions_.data());
  for (int32_t slot = 1; slot + 1 < question.count; ++slot) {
    const float* const option = Row(rows.wide, question.first + slot, ld) + width();
    double sum = 0;
    for (int32_t i = 0; i < width(); ++i) sum += double{summary[i]} * option[i];
    pass_.Output(output)[slot - 1] = static_cast<float>(sum * scale);
  }
}

}  // namespace skein
