#pragma once

#include <cstdint>
#include <span>

#include "model/forward/layout.h"
#include "model/forward/operator.h"
#include "model/forward/program.h"

namespace skein {

// The boundaries at which a pass can stop.
enum class StopAt : uint8_t {
  kTicket,    // between any two tickets
  kOperator,  // between two operators, or chunks of one
  kLayer,     // before a layer or a chunk of outputs
  kEnd,       // only at its end
};

// The position of a walk: everything before ticket `next_ticket` of this operator is done.
struct CursorPosition {
  enum class Part : uint8_t { kInput, kLayers, kOutputs };

  Part part = Part::kInput;
  int32_t index = 0;      // the layer, or the chunk of outputs
  int32_t op = 0;         // index in the list of operators
  int32_t row_chunk = 0;  // index of the chunk, for an operator that runs by chunk
  int32_t next_ticket = 0;

  friend bool operator==(const CursorPosition&, const CursorPosition&) = default;
};

// Walks the operators of a program in the order they run:
//
//   input, layer 0, layer 1, ..., chunk 0 of the outputs, chunk 1, ...
//
// Within a list, a group of operators that run by chunk is repeated for each chunk of the active
// rows.
class OperatorCursor {
 public:
  // chunk_tokens: rows of a chunk, >= 1. The program outlives the cursor.
  OperatorCursor(const ForwardProgram& program, int32_t chunk_tokens);

  // Goes to the first ticket of a pass over `num_active` rows. `outputs` must stay valid.
  void Begin(std::span<const OutputChunk> outputs, int32_t num_active);
  // Goes to the first ticket of the outputs: something else runs the operators before.
  void BeginOutputs(std::span<const OutputChunk> outputs);

  // Whether every operator has run. Then no function below may be called.
  bool done() const;
  Operator& op() const { return *list()[position_.op].op; }
  OperatorRange range() const { return range_; }
  const CursorPosition& position() const { return position_; }
  void set_next_ticket(int32_t ticket) { position_.next_ticket = ticket; }

  // Whether the operator is the first, or the last, of its layer or chunk of outputs.
  bool AtListBegin() const { return position_.op == 0 && position_.row_chunk == 0; }
  bool AtListEnd() const { return position_.op + 1 == list().size(); }
  bool in_layer() const { return position_.part == CursorPosition::Part::kLayers; }
  bool in_outputs() const { return position_.part == CursorPosition::Part::kOutputs; }
  // Whether a pass that stops at `stop_at` may stop before this operator. False for kTicket: such
  // passes stop between tickets.
  bool AtBoundary(StopAt stop_at) const;

  // Goes to the next operator. Behind the last operator of a group, which runs chunk by chunk, that
  // is the group's first operator if a chunk is left. `num_active`: the number of rows that the
  // pass still computes.
  void Next(int32_t num_active);

 private:
  const OperatorList& list() const;
  bool EndsGroup() const;
  void NextList();
  void SetRange(int32_t num_active);

  const ForwardProgram& program_;
  const int32_t chunk_tokens_;
  std::span<const OutputChunk> outputs_;
  CursorPosition position_;
  OperatorRange range_;
};

}  // namespace skein
