#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/forward/batch.h"
#include "model/forward/context.h"
#include "model/forward/workspace.h"

namespace skein {

// Tokens [first, first + count) of one row of the batch. Each list of spans says whether these are
// indices of tokens or of active tokens.
struct RowSpan {
  int32_t row = 0;
  int32_t first = 0;
  int32_t count = 0;
};

enum class OutputKind : uint8_t {
  kLogits,
  kLabels,
  kEmbedding,
  kClasses,
  kMarkers,
  kActions,
  kQuestions,  // for a compact or a joint head
  kStates,     // hidden states of single tokens
  kSparse,     // logits of the tokens of rows, which become a sparse vector for each row
};
inline constexpr int kNumOutputKinds = 9;

// Outputs of one kind that exist at the same time: [first, first + count) of the batch's list of
// that kind.
struct OutputChunk {
  OutputKind kind = OutputKind::kLogits;
  int32_t first = 0;
  int32_t count = 0;
};

// The layout of a batch for one pass: the block tables and KV blocks of its rows, the tokens that
// the operators go over, and the chunks of its outputs. It is computed once per pass.
//
// *Active* tokens are the tokens that the operators go over, in order: row i of x and q belongs to
// active token i. At first, all tokens are active. In the last layer, after the keys and values are
// stored, only the output tokens stay active: no output is read from other tokens.
class BatchLayout {
 public:
  // All arguments are borrowed. Reserves memory for limits.max_tokens.
  BatchLayout(const ForwardContext& context, const ForwardLimits& limits,
              const ForwardBatch& batch);

  // Lays out the present batch. REQUIRES: as ForwardPass::Begin.
  void Assign();
  // A number that changes whenever the active tokens do.
  uint64_t version() const { return version_; }

  // The block table of a row. The pass's own blocks have ids from kv_layout.num_blocks on.
  std::span<const int32_t> Table(int32_t row) const;
  int32_t num_own_blocks() const { return num_own_blocks_; }
  // Spans of tokens, ascending, each within one KV block and one chunk.
  std::span<const RowSpan> block_spans() const { return block_spans_; }
  // Rows with a fork.
  std::span<const int32_t> forks() const { return forks_; }
  // The index of a token of `row` in its sequence, and thus of its key and value.
  int32_t Position(int32_t row, int32_t token) const {
    return batch_.rows[row].begin + token - batch_.rows[row].first_token;
  }
  // The position by which the token's q and k are rotated. It is Position, unless options are read
  // side by side.
  int32_t RopePosition(int32_t row, int32_t token) const {
    return rope_positions_.empty() ? Position(row, token) : rope_positions_[token];
  }

  int32_t num_active() const {
    const size_t count = only_outputs_ ? output_tokens_.size() : batch_.tokens.size();
    return static_cast<int32_t>(count);
  }
  // The token with this active index.
  int32_t TokenAt(int32_t active) const { return only_outputs_ ? output_tokens_[active] : active; }
  // Whether any row has an adapter; and the adapter of an active token (ForwardRow::adapter).
  bool has_adapters() const { return !adapters_.empty(); }
  int32_t AdapterAt(int32_t active) const { return adapters_[TokenAt(active)]; }
  // The active index of `token`, or of the first active token after it.
  int32_t ActiveIndex(int32_t token) const;
  // From now on, only the output tokens are active.
  void KeepOutputTokens();

  std::span<const OutputChunk> outputs() const { return outputs_; }
  // The token from which output `index` of a kind is read; for a question, its summary token. Not
  // for outputs that are read from a mean.
  int32_t OutputToken(OutputKind kind, int32_t index) const;

 private:
  void CheckRow(const ForwardRow& row) const;
  void CheckState(const ForwardRow& row) const;
  void CheckOutputs() const;
  void MakeTables();
  void MakeBlockSpans();
  void MakeOutputs();
  void FindOutputTokens();
  void FindAdapters();
  void FindRopePositions();
  void CutQuestions();
  int32_t LastToken(int32_t row) const;

  const ForwardContext& context_;
  const ForwardLimits& limits_;
  const ForwardBatch& batch_;
  uint64_t version_ = 0;
  std::vector<RowSpan> block_spans_;
  std::vector<int32_t> forks_;
  // The tables of rows with blocks of the pass's own, one behind the other. own_table_begin_[row]
  // is the index at which such a table begins, or -1 if the row's own block table covers the row.
  std::vector<int32_t> own_tables_;
  std::vector<int32_t> own_table_begin_;
  int32_t num_own_blocks_ = 0;
  std::vector<int32_t> output_tokens_;  // ascending, distinct
  bool only_outputs_ = false;           // whether only output_tokens_ are active
  std::vector<OutputChunk> outputs_;
  std::vector<int32_t> adapters_;        // [num_tokens]; empty if all rows use the base model
  std::vector<int32_t> rope_positions_;  // [num_tokens]; empty: use Position
};

}  // namespace skein
