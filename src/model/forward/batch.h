#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/check.h"

namespace skein {

// The end of a prefix that ends inside a block: positions [begin - num_tokens, begin). The row
// copies this part of block `from` into its own block, layer by layer. Block `from` was stored
// before the pass, or the row's parent stores it in the same pass. The copy goes to the first slots
// of the row's block, before the row attends to that block.
struct ForwardFork {
  int32_t from = 0;        // the block that has these positions in its first slots; not the row's
                           // own
  int32_t num_tokens = 0;  // slots, below kKvBlockTokens; 0: no fork
};

// The slots of a row's states in linear layers (StateLayout). The row starts from the state after
// the tokens before it, which is in `from`. `from` may be `to`. If a row starts from the end of
// another row of the same pass, it comes after that row. The state after the row's last token goes
// to `to`.
struct ForwardState {
  static constexpr int32_t kNone = -1;

  // A slot that also gets the state after the tokens before position `at`.
  struct Snapshot {
    int32_t slot = kNone;  // neither `from` nor `to`
    int32_t at = 0;        // in (begin, begin + num_tokens]; ascending
  };

  int32_t from = kNone;                    // kNone: the row begins its sequence
  int32_t to = kNone;                      // kNone: the state is not kept
  std::array<Snapshot, 8> snapshots = {};  // used entries come first
};

// Consecutive tokens of one sequence. The keys and values of its positions [0, begin) are in the
// cache, or another row of the same pass (its parent) computes them. In the second case, the row's
// block table begins with the parent's blocks. A row of a bidirectional model is a whole sequence:
// begin is 0.
//
// The table may end before the row does. The remaining keys and values are then in memory of the
// pass, one layer at a time, and are lost when the pass ends:
//
//   0            begin         block_table.size() blocks        begin + num_tokens
//   |-- in KV ---|-- computed, kept --|-- computed, the pass's own --|
struct ForwardRow {
  int32_t first_token = 0;               // index of its first token in the batch
  int32_t num_tokens = 0;                // >= 1
  int32_t begin = 0;                     // position of its first token
  std::span<const int32_t> block_table;  // covers at least [0, begin) without the fork
  ForwardFork fork = {};                 // its num_tokens are begin % kKvBlockTokens, or 0
  int32_t adapter = 0;  // number in ForwardContext::adapters, counted from 1; 0: base model
  // For encoders: the first position of the second segment.
  int32_t second_segment_begin = std::numeric_limits<int32_t>::max();
  // For encoders: the number of first tokens that the tokens of the row attend to.
  int32_t num_attended = std::numeric_limits<int32_t>::max();
  ForwardState state = {};
  int32_t question_type = 0;  // for decision models: the row of the type embedding
  // For decision models that read a question's options side by side. Option i is the tokens
  // [option_bounds[i], option_bounds[i + 1]) of the row. All options begin at the same position.
  // The tokens behind the options begin at the position behind the longest option. No option
  // attends to another. If empty, tokens have positions and attend as in any row. A row with
  // options begins at 0.
  std::span<const int32_t> option_bounds = {};
};

// The questions of a row, for a joint head. Positions count from the beginning of the sequence. All
// empty: the row asks one question of the row's question_type, whose text is the summary token and
// whose options are one token each.
struct RowSchema {
  std::span<const int32_t> types;                   // [questions]
  std::span<const int32_t> text_begins, text_ends;  // [questions]
  std::span<const int32_t> option_counts;           // [questions], each >= 1
  std::span<const int32_t> option_ends;             // [options]
};

// A question that a compact head answers, from the states of its markers and its summary token. Or
// the questions that a joint head answers from the whole row; their options begin at the markers.
struct DecidedRow {
  int32_t row = 0;            // index into the rows
  int32_t first_marker = 0;   // index into ForwardBatch::marker_tokens
  int32_t num_markers = 0;    // >= 1, at most kMaxMarkers
  int32_t summary_token = 0;  // index into the batch's tokens
  RowSchema schema = {};
};
inline constexpr int32_t kMaxMarkers = 1024;

// A token of a row that is read as a sparse vector.
struct SparseToken {
  int32_t token = 0;      // index into the batch's tokens
  bool ends_row = false;  // the row's last token, whose output is the vector
};

// A few logits after one token. `labels` are rows of the output matrix.
struct LabelOutput {
  int32_t token = 0;                // index into the batch's tokens
  std::span<const int32_t> labels;  // distinct ids in [0, vocab); >= 1
};

// The input of one forward pass: rows of different lengths laid end to end.
//
//   tokens: | row 0 | row 1      | row 2 | ...
//
// The spans belong to the caller and stay valid until the pass is done. Clear keeps the capacity.
struct ForwardBatch {
  std::vector<int32_t> tokens;  // [num_tokens], ids in [0, vocab)
  std::vector<ForwardRow> rows;

  // The outputs, which are handed out kind by kind, in this order.
  std::vector<int32_t> logit_tokens;  // indices into `tokens`, ascending
  std::vector<LabelOutput> label_outputs;
  // Indices into `rows` of the rows to be pooled into an embedding. A row pooled by its mean has no
  // other output.
  std::vector<int32_t> embedded_rows;
  // Indices into `rows`. The last token of the row is classified. For an encoder, the first token
  // or the mean is classified instead; with the mean, a row has no other output.
  std::vector<int32_t> classified_rows;
  // For decision models: indices into `tokens` of the options' markers, row by row. Each marker is
  // scored alone, unless the head answers whole questions.
  std::vector<int32_t> marker_tokens;
  std::vector<DecidedRow> decided_rows;  // for a compact or a joint head
  // Indices into `rows` of the rows whose first token's state is scored for the actions.
  std::vector<int32_t> action_rows;
  // The tokens of the rows to be read as sparse vectors, row by row, from the first to the last.
  // Their rows have no other output.
  std::vector<SparseToken> sparse_tokens;
  std::vector<int32_t> state_tokens;  // indices into `tokens`; their rows have no other output

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }

  void Clear() {
    tokens.clear();
    rows.clear();
    logit_tokens.clear();
    label_outputs.clear();
    embedded_rows.clear();
    classified_rows.clear();
    marker_tokens.clear();
    decided_rows.clear();
    action_rows.clear();
    sparse_tokens.clear();
    state_tokens.clear();
  }

  // Appends a row. `wants_logits`: the logits after its last token are an output.
  void AddRow(std::span<const int32_t> row_tokens, int32_t begin,
              std::span<const int32_t> block_table, bool wants_logits) {
    SKEIN_CHECK(!row_tokens.empty());
    rows.push_back({num_tokens(), static_cast<int32_t>(row_tokens.size()), begin, block_table});
    tokens.insert(tokens.end(), row_tokens.begin(), row_tokens.end());
    if (wants_logits) logit_tokens.push_back(num_tokens() - 1);
  }
};

}  // namespace skein
