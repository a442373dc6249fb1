#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// The rows of a batch, for an operator on the states of one linear layer. Rows come in order, so
// that a row may start from the end of an earlier one. Each row is split at the chunks of the pass.
class StateRows {
 public:
  // `pass` outlives this object. REQUIRES: the layer is linear.
  StateRows(PassState& pass, int32_t layer);

  // Finds the pieces of rows in `range`.
  void Begin(OperatorRange range);

  // Walks all pieces with one part of the layer's state: `size` floats from `offset` on. Calls
  // fn(first, count) for consecutive tokens of one row, counted from the first token of the range.
  // `state` [size] is the state before these tokens; fn replaces it by the state after them.
  // Threads may walk different parts.
  template <typename Fn>
  void Walk(int64_t offset, int64_t size, float* state, const Fn& fn) const {
    for (const Piece& piece : pieces_) {
      Load(piece, offset, size, state);
      int32_t done = 0;  // tokens of the piece that were walked
      for (const auto& snapshot : pass_.batch.rows[piece.row].state.snapshots) {
        if (snapshot.slot == ForwardState::kNone) break;
        const int32_t end = snapshot.at - piece.position;
        if (end <= done || end > piece.count) continue;
        fn(piece.first + done, end - done);
        Store(state, size, SlotOf(snapshot.slot), offset);
        done = end;
      }
      if (done < piece.count) fn(piece.first + done, piece.count - done);
      Store(state, size, EndOf(piece), offset);
    }
  }

 private:
  // Tokens [first, first + count) of the range; all belong to one row.
  struct Piece {
    int32_t row = 0;
    int32_t first = 0;
    int32_t count = 0;
    int32_t position = 0;  // of its first token
    bool begins = false;   // whether it begins the row
    bool ends = false;     // whether it ends the row
  };

  float* SlotOf(int32_t slot) const;
  // The address of the state between two chunks of a row.
  float* Between(const ForwardState& state) const;
  float* EndOf(const Piece& piece) const;  // null: the state is not kept
  void Load(const Piece& piece, int64_t offset, int64_t size, float* state) const;
  static void Store(const float* state, int64_t size, float* to, int64_t offset);

  PassState& pass_;
  const int32_t linear_layer_;
  std::vector<Piece> pieces_;
};

}  // namespace skein
