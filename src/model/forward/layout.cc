#include "model/forward/layout.h"

#include <algorithm>

#include "base/check.h"
#include "model/forward/outputs/option_places.h"
#include "model/forward/product_cut.h"

namespace skein {

BatchLayout::BatchLayout(const ForwardContext& context, const ForwardLimits& limits,
                         const ForwardBatch& batch)
    : context_(context), limits_(limits), batch_(batch) {
  const size_t tokens = limits.max_tokens;
  block_spans_.reserve(tokens);
  forks_.reserve(tokens);
  own_table_begin_.reserve(tokens);
  output_tokens_.reserve(tokens);
  if (context.adapters != nullptr) adapters_.reserve(tokens);
  if (context.weights->config.head == Head::kDecision) rope_positions_.reserve(tokens);
}

void BatchLayout::Assign() {
  SKEIN_CHECK(batch_.num_tokens() >= 1 && batch_.num_tokens() <= limits_.max_tokens);
  const int32_t vocab = context_.weights->config.vocab_size;
  for (const int32_t token : batch_.tokens) SKEIN_CHECK(token >= 0 && token < vocab);
  for (const ForwardRow& row : batch_.rows) CheckRow(row);
  CheckOutputs();
  only_outputs_ = false;
  ++version_;
  MakeTables();
  MakeBlockSpans();
  MakeOutputs();
  FindOutputTokens();
  FindAdapters();
  FindRopePositions();
}

void BatchLayout::CheckRow(const ForwardRow& row) const {
  const ModelConfig& config = context_.weights->config;
  const int32_t max_positions =
      context_.rope == nullptr ? config.max_position : context_.rope->num_positions();
  SKEIN_CHECK(row.begin >= 0 && row.begin + row.num_tokens <= max_positions);
  const std::span<const int32_t> bounds = row.option_bounds;
  SKEIN_CHECK(row.begin == 0 || (!config.bidirectional && bounds.empty()));
  SKEIN_CHECK(bounds.empty() ||
              (bounds.size() >= 2 && bounds.front() >= 1 && bounds.back() <= row.num_tokens &&
               std::ranges::is_sorted(bounds)));
  SKEIN_CHECK(row.num_attended >= 1);
  const size_t num_adapters = context_.adapters == nullptr ? 0 : context_.adapters->size();
  SKEIN_CHECK(row.adapter >= 0 && static_cast<size_t>(row.adapter) <= num_adapters);
  if (config.has_linear_layers()) CheckState(row);
  const bool forks = row.fork.num_tokens > 0;
  const int32_t needed = forks ? row.begin / kKvBlockTokens : CeilDiv(row.begin, kKvBlockTokens);
  SKEIN_CHECK(std::ssize(row.block_table) >= needed);
  for (const int32_t block : row.block_table) {
    SKEIN_CHECK(block >= 0 && block < context_.kv_layout.num_blocks);
  }
  if (!forks) return;
  SKEIN_CHECK(row.fork.num_tokens == row.begin % kKvBlockTokens);
  SKEIN_CHECK(row.fork.from >= 0 && row.fork.from < context_.kv_layout.num_blocks);
  const size_t to = row.begin / kKvBlockTokens;
  SKEIN_CHECK(to >= row.block_table.size() || row.block_table[to] != row.fork.from);
}

void BatchLayout::CheckState(const ForwardRow& row) const {
  const ForwardState& state = row.state;
  const auto is_slot = [&](int32_t slot) {
    return slot >= 0 && slot < context_.state_layout.num_slots;
  };
  SKEIN_CHECK(row.begin == 0 ? state.from == ForwardState::kNone : is_slot(state.from));
  SKEIN_CHECK(state.to == ForwardState::kNone || is_slot(state.to));
  int32_t after = row.begin;
  for (const ForwardState::Snapshot& snapshot : state.snapshots) {
    if (snapshot.slot == ForwardState::kNone) break;
    SKEIN_CHECK(is_slot(snapshot.slot) && snapshot.slot != state.from);
    SKEIN_CHECK(snapshot.slot != state.to && snapshot.at > after);
    SKEIN_CHECK(snapshot.at <= row.begin + row.num_tokens);
    after = snapshot.at;
  }
}

void BatchLayout::CheckOutputs() const {
  const ModelWeights& w = *context_.weights;
  SKEIN_CHECK(w.output.n() > 0 || (batch_.logit_tokens.empty() && batch_.label_outputs.empty()));
  SKEIN_CHECK(w.head_out.n() > 0 || batch_.classified_rows.empty());
  const bool decides = w.config.head == Head::kDecision;
  SKEIN_CHECK(decides || (batch_.marker_tokens.empty() && batch_.action_rows.empty()));
  const bool questions = w.config.decision.answers_questions();
  SKEIN_CHECK(questions ? batch_.action_rows.empty() : batch_.decided_rows.empty());
  for (const DecidedRow& row : batch_.decided_rows) {
    SKEIN_CHECK(row.num_markers >= 1 && row.num_markers <= kMaxMarkers);
    SKEIN_CHECK(size_t(row.first_marker) + row.num_markers <= batch_.marker_tokens.size());
    SKEIN_CHECK(row.schema.option_ends.empty() ||
                std::ssize(row.schema.option_ends) == row.num_markers);
  }
  SKEIN_CHECK(w.config.head == Head::kMaskedLanguageModel || batch_.sparse_tokens.empty());
  SKEIN_CHECK(batch_.sparse_tokens.empty() || batch_.sparse_tokens.back().ends_row);
  for (const LabelOutput& output : batch_.label_outputs) {
    SKEIN_CHECK(!output.labels.empty());
    for (const int32_t label : output.labels) SKEIN_CHECK(label >= 0 && label < w.output.n());
  }
  for (const int32_t row : batch_.embedded_rows) {
    SKEIN_CHECK(context_.pooling == Pooling::kLast || batch_.rows[row].begin == 0);
  }
}

void BatchLayout::MakeTables() {
  own_tables_.clear();
  own_table_begin_.clear();
  num_own_blocks_ = 0;
  for (const ForwardRow& row : batch_.rows) {
    const auto num_kept = static_cast<int32_t>(row.block_table.size());
    const int32_t num_own = CeilDiv(row.begin + row.num_tokens, kKvBlockTokens) - num_kept;
    own_table_begin_.push_back(num_own > 0 ? static_cast<int32_t>(own_tables_.size()) : -1);
    if (num_own <= 0) continue;
    own_tables_.insert(own_tables_.end(), row.block_table.begin(), row.block_table.end());
    for (int32_t i = 0; i < num_own; ++i) {
      own_tables_.push_back(context_.kv_layout.num_blocks + num_own_blocks_++);
    }
  }
  SKEIN_CHECK(num_own_blocks_ <= limits_.max_own_blocks);
}

std::span<const int32_t> BatchLayout::Table(int32_t row) const {
  const ForwardRow& r = batch_.rows[row];
  if (own_table_begin_[row] < 0) return r.block_table;
  const int32_t size = CeilDiv(r.begin + r.num_tokens, kKvBlockTokens);
  return std::span(own_tables_).subspan(own_table_begin_[row], size);
}

void BatchLayout::MakeBlockSpans() {
  block_spans_.clear();
  forks_.clear();
  for (int32_t r = 0; r < static_cast<int32_t>(batch_.rows.size()); ++r) {
    const ForwardRow& row = batch_.rows[r];
    if (row.fork.num_tokens > 0) forks_.push_back(r);
    for (int32_t i = 0; i < row.num_tokens;) {
      const int32_t token = row.first_token + i;
      const int32_t in_chunk = token % limits_.chunk();
      const int32_t left_in_block = kKvBlockTokens - (row.begin + i) % kKvBlockTokens;
      const int32_t left = std::min(left_in_block, limits_.chunk() - in_chunk);
      const int32_t count = std::min(left, row.num_tokens - i);
      block_spans_.push_back({r, token, count});
      i += count;
    }
  }
}

void BatchLayout::MakeOutputs() {
  outputs_.clear();
  const auto cut = [this](OutputKind kind, size_t num_outputs) {
    const auto end = static_cast<int32_t>(num_outputs);
    for (int32_t first = 0; first < end; first += limits_.max_logit_rows) {
      outputs_.push_back({kind, first, std::min(limits_.max_logit_rows, end - first)});
    }
  };
  cut(OutputKind::kLogits, batch_.logit_tokens.size());
  cut(OutputKind::kLabels, batch_.label_outputs.size());
  cut(OutputKind::kEmbedding, batch_.embedded_rows.size());
  cut(OutputKind::kClasses, batch_.classified_rows.size());
  cut(OutputKind::kStates, batch_.state_tokens.size());
  cut(OutputKind::kSparse, batch_.sparse_tokens.size());
  if (context_.weights->config.decision.answers_questions()) return CutQuestions();
  cut(OutputKind::kMarkers, batch_.marker_tokens.size());
  cut(OutputKind::kActions, batch_.action_rows.size());
}

// Cuts the questions into chunks that fit the workspace of the head. The workspace of a joint head
// holds one row.
void BatchLayout::CutQuestions() {
  if (context_.weights->config.decision.is_joint()) {
    for (int32_t i = 0; i < std::ssize(batch_.decided_rows); ++i) {
      outputs_.push_back({OutputKind::kQuestions, i, 1});
    }
    return;
  }
  const int32_t rows_max = CompactRowsMax(limits_);
  int32_t rows = rows_max;  // rows in the present chunk
  for (int32_t i = 0; i < static_cast<int32_t>(batch_.decided_rows.size()); ++i) {
    const int32_t more = batch_.decided_rows[i].num_markers + kCompactExtraRows;
    SKEIN_CHECK(more <= rows_max);
    if (rows + more > rows_max || outputs_.back().count == limits_.max_logit_rows) {
      outputs_.push_back({OutputKind::kQuestions, i, 0});
      rows = 0;
    }
    ++outputs_.back().count;
    rows += more;
  }
}

void BatchLayout::FindOutputTokens() {
  output_tokens_.clear();
  const auto add = [this](OutputKind kind, size_t num_outputs) {
    for (size_t i = 0; i < num_outputs; ++i) {
      output_tokens_.push_back(OutputToken(kind, static_cast<int32_t>(i)));
    }
  };
  add(OutputKind::kLogits, batch_.logit_tokens.size());
  const auto add_row = [this](int32_t r) {
    const ForwardRow& row = batch_.rows[r];
    for (int32_t i = 0; i < row.num_tokens; ++i) output_tokens_.push_back(row.first_token + i);
  };
  const auto add_rows = [&](const std::vector<int32_t>& rows) {
    for (const int32_t r : rows) add_row(r);
  };
  add(OutputKind::kLabels, batch_.label_outputs.size());
  add(OutputKind::kMarkers, batch_.marker_tokens.size());
  add(OutputKind::kActions, batch_.action_rows.size());
  add(OutputKind::kQuestions, batch_.decided_rows.size());
  if (context_.weights->config.decision.is_joint()) {
    for (const DecidedRow& row : batch_.decided_rows) add_row(row.row);
  }
  add(OutputKind::kStates, batch_.state_tokens.size());
  add(OutputKind::kSparse, batch_.sparse_tokens.size());
  if (context_.weights->config.encoder.classifies_mean) {
    add_rows(batch_.classified_rows);
  } else {
    add(OutputKind::kClasses, batch_.classified_rows.size());
  }
  if (context_.pooling == Pooling::kMean) {
    add_rows(batch_.embedded_rows);
  } else {
    add(OutputKind::kEmbedding, batch_.embedded_rows.size());
  }
  std::ranges::sort(output_tokens_);
  const auto surplus = std::ranges::unique(output_tokens_);
  output_tokens_.erase(surplus.begin(), surplus.end());
  if (output_tokens_.empty()) return;
  SKEIN_CHECK(output_tokens_.front() >= 0 && output_tokens_.back() < batch_.num_tokens());
}

void BatchLayout::FindAdapters() {
  adapters_.clear();
  const auto is_adapted = [](const ForwardRow& row) { return row.adapter != 0; };
  if (std::ranges::none_of(batch_.rows, is_adapted)) return;
  for (const ForwardRow& row : batch_.rows) {
    adapters_.insert(adapters_.end(), row.num_tokens, row.adapter);
  }
}

void BatchLayout::FindRopePositions() {
  rope_positions_.clear();
  const auto is_parallel = [](const ForwardRow& row) { return !row.option_bounds.empty(); };
  if (std::ranges::none_of(batch_.rows, is_parallel)) return;
  for (const ForwardRow& row : batch_.rows) {
    const OptionPlaces places(row.option_bounds, row.num_tokens);
    for (int32_t i = 0; i < row.num_tokens; ++i) {
      rope_positions_.push_back(row.begin + places.PositionOf(i));
    }
  }
}

int32_t BatchLayout::ActiveIndex(int32_t token) const {
  if (!only_outputs_) return token;
  const auto found = std::ranges::lower_bound(output_tokens_, token);
  return static_cast<int32_t>(found - output_tokens_.begin());
}

void BatchLayout::KeepOutputTokens() {
  if (num_active() == std::ssize(output_tokens_)) return;
  only_outputs_ = true;
  ++version_;
}

int32_t BatchLayout::OutputToken(OutputKind kind, int32_t index) const {
  switch (kind) {
    case OutputKind::kLogits:
      return batch_.logit_tokens[index];
    case OutputKind::kLabels:
      return batch_.label_outputs[index].token;
    case OutputKind::kEmbedding: {
      const int32_t row = batch_.embedded_rows[index];
      const bool first = context_.pooling == Pooling::kCls;
      return first ? batch_.rows[row].first_token : LastToken(row);
    }
    case OutputKind::kMarkers:
      return batch_.marker_tokens[index];
    case OutputKind::kStates:
      return batch_.state_tokens[index];
    case OutputKind::kSparse:
      return batch_.sparse_tokens[index].token;
    case OutputKind::kActions:
      return batch_.rows[batch_.action_rows[index]].first_token;
    case OutputKind::kQuestions:
      return batch_.decided_rows[index].summary_token;
    case OutputKind::kClasses:
      break;
  }
  const int32_t row = batch_.classified_rows[index];
  const bool first = context_.weights->config.is_encoder();
  return first ? batch_.rows[row].first_token : LastToken(row);
}

int32_t BatchLayout::LastToken(int32_t row) const {
  return batch_.rows[row].first_token + batch_.rows[row].num_tokens - 1;
}

}  // namespace skein
