#include "model/forward/outputs/joint_head_operators.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/ceil_div.h"
#include "base/check.h"

namespace skein {

JointTask::JointTask(const PassState& pass, int32_t index)
    : pass_(&pass),
      decided_(&pass.batch.decided_rows[static_cast<size_t>(index)]),
      row_(&pass.batch.rows[static_cast<size_t>(decided_->row)]) {}

int32_t JointTask::Count(JointRows rows) const {
  switch (rows) {
    case JointRows::kTokens:
      return row_->num_tokens;
    case JointRows::kOptions:
      return decided_->num_markers;
    case JointRows::kQuestions:
      return plain() ? 1 : static_cast<int32_t>(decided_->schema.types.size());
    case JointRows::kLast:
      break;
  }
  return 1;
}

JointTask::Span JointTask::TextOf(int32_t question) const {
  if (plain()) {
    const int32_t at = decided_->summary_token - row_->first_token;
    return {at, at + 1};
  }
  const auto i = static_cast<size_t>(question);
  return {decided_->schema.text_begins[i] - row_->begin,
          decided_->schema.text_ends[i] - row_->begin};
}

JointTask::Span JointTask::OptionAt(int32_t option) const {
  const auto marker = static_cast<size_t>(decided_->first_marker + option);
  const int32_t begin = pass_->batch.marker_tokens[marker] - row_->first_token;
  if (plain()) return {begin, begin + 1};
  return {begin, decided_->schema.option_ends[static_cast<size_t>(option)] - row_->begin};
}

int32_t JointTask::TypeOf(int32_t question) const {
  return plain() ? row_->question_type : decided_->schema.types[static_cast<size_t>(question)];
}

int32_t JointTask::NumOptionsOf(int32_t question) const {
  return plain() ? decided_->num_markers
                 : decided_->schema.option_counts[static_cast<size_t>(question)];
}

int32_t JointTask::QuestionOf(int32_t option) const {
  int32_t question = 0;
  while (option >= NumOptionsOf(question)) option -= NumOptionsOf(question++);
  return question;
}

int32_t JointTask::FirstOptionOf(int32_t question) const {
  int32_t first = 0;
  for (int32_t i = 0; i < question; ++i) first += NumOptionsOf(i);
  return first;
}

int32_t JointRowOperator::Begin(OperatorRange range) {
  SKEIN_CHECK(range.count == 1);
  index_ = range.first;
  return CeilDiv(JointTask(pass_, index_).Count(rows_), kTokensPerTicket);
}

void JointRowOperator::Run(int32_t ticket) {
  const JointTask task(pass_, index_);
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, task.Count(rows_));
  for (int32_t row = begin; row < end; ++row) fn_(task, row);
}

JointProductOperator::JointProductOperator(PassState& pass, std::string_view name,
                                           const JointProduct& product)
    : pass_(pass),
      name_(name),
      product_(product),
      cutter_(pass.Cutter(pass.Shape(product.weight->n(), product.weight->k(), DType::kF32))) {}

int32_t JointProductOperator::Begin(OperatorRange range) {
  const JointTask task(pass_, range.first);
  num_rows_ = task.Count(product_.rows);
  in_ = product_.in;
  if (in_ == nullptr) {
    in_ = pass_.workspace.x +
          int64_t{pass_.layout.ActiveIndex(task.first_token())} * pass_.config().hidden_size;
  }
  cut_ = cutter_.Cut(num_rows_);
  return cut_.num_tickets();
}

void JointProductOperator::Run(int32_t ticket) {
  const PackedWeight& weight = *product_.weight;
  const int32_t row = cut_.row_begin(ticket), col = cut_.col_begin(ticket);
  GemmCall call = {.a = in_ + int64_t{row} * weight.k(), .lda = weight.k(), .w = &weight};
  call.m = std::min(cut_.rows, num_rows_ - row);
  call.n_begin = col;
  call.n_end = std::min(col + cut_.cols, weight.n());
  call.bias = product_.bias;
  call.add_to_out = product_.adds;
  call.activation = product_.activation;
  call.out = product_.out + int64_t{row} * weight.n();
  call.ldo = weight.n();
  pass_.kernels().Gemm(call);
}

JointAttentionOperator::JointAttentionOperator(PassState& pass, std::string_view name,
                                               const JointAttention& attention)
    : pass_(pass),
      name_(name),
      attention_(attention),
      layout_(JointKvLayout(pass.config(), pass.limits)),
      block_ids_(static_cast<size_t>(layout_.num_blocks)) {
  std::iota(block_ids_.begin(), block_ids_.end(), 0);
}

int32_t JointAttentionOperator::Begin(OperatorRange range) {
  const JointTask task(pass_, range.first);
  num_rows_ = task.Count(attention_.rows);
  num_keys_ = task.Count(attention_.keys);
  num_tiles_ = CeilDiv(num_rows_, AttentionTileRows(num_keys_));
  return num_tiles_ * layout_.num_kv_heads;
}

void JointAttentionOperator::Run(int32_t ticket) {
  const int32_t rows = AttentionTileRows(num_keys_);
  const int32_t head = ticket / num_tiles_, begin = ticket % num_tiles_ * rows;
  const int32_t count = std::min(rows, num_rows_ - begin);
  const int64_t width = pass_.config().decision.joint.width;
  const int64_t column = int64_t{head} * layout_.head_dim;
  AttentionRow tile[kMaxQueryRows];
  for (int32_t i = 0; i < count; ++i) {
    const int64_t row = begin + i;
    tile[i] = {attention_.q + row * attention_.q_stride + column,
               attention_.out + row * width + column, num_keys_, CeilDiv(num_keys_, kKvBlockTokens),
               block_ids_.data()};
  }
  pass_.kernels().Attention({.rows = {tile, static_cast<size_t>(count)},
                             .kv = pass_.workspace.head.joint.kv + layout_.Offset(0, 0, head),
                             .layout = &layout_,
                             .scale = static_cast<float>(1 / std::sqrt(double(layout_.head_dim)))});
}

}  // namespace skein
