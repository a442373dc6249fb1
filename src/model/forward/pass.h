#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "model/forward/batch.h"
#include "model/forward/context.h"
#include "model/forward/cursor.h"
#include "model/forward/layout.h"
#include "model/forward/pass_state.h"
#include "model/forward/program.h"

namespace skein {

enum class ForwardStatus {
  kStopped,  // `stop` read true; the next Run continues
  kLogits,   // logits() holds the next rows; the next Run continues behind them
  kOutputs,  // output() holds the next outputs of another kind; Run continues behind them
  kDone,
};

// One forward pass over a batch: a program of operators (model/forward/program.h) that a cursor
// walks. The pass can stop between any two tickets. The activations stay, and continuing later
// changes no bit. Nothing is allocated after the first use. One thread calls the members; its team
// does the work.
class ForwardPass {
 public:
  ForwardPass(const ForwardContext& context, const ForwardLimits& limits);

  // Sets up the pass over batch(), which the caller has filled; runs no operator. REQUIRES: 1 to
  // max_tokens tokens, ids in [0, vocab), positions within the rope table, blocks in the layout, at
  // most max_own_blocks blocks beyond the rows' tables; the model has the requested heads; rows
  // pooled by kMean or kCls begin at position 0.
  void Begin();
  // The same for the outputs alone of a batch whose layers another device has computed.
  // x [rows, hidden]: the residual stream at the tokens from which outputs are read, ascending, or
  // at all tokens unless ModelConfig::gathers_outputs(). It is overwritten. REQUIRES: as Begin;
  // ForwardLimits::outputs_alone.
  void BeginOutputs(const ForwardBatch& batch, float* x);
  ForwardBatch& batch() { return state_.batch; }

  // Runs operators until `stop` (may be null) reads true at a boundary, until outputs are ready, or
  // to the end.
  ForwardStatus Run(const std::atomic<bool>* stop, StopAt stop_at = StopAt::kTicket);

  // After kLogits: rows
  // [first_logit_row(), first_logit_row() + num_logit_rows()) of batch().logit_tokens are ready.
  // logits(i) [vocab] belongs to the i-th of these rows.
  int32_t first_logit_row() const { return chunk().first; }
  int32_t num_logit_rows() const { return chunk().count; }
  const float* logits(int32_t i) const { return output(i); }

  // After kLogits or kOutputs: the chunk of outputs that output() holds. output(i) is the i-th of
  // the chunk: logits [vocab], logits of which only the labels' are valid, an embedding
  // [embedding_size()], classes [num_classes], a marker's logit [1], the sums of the actions'
  // hidden layer [kActionWidth], the logits of a question's options [num_markers], a hidden
  // state [hidden], or, only for a token that ends its row, a sparse vector with all its zeros
  // [vocab].
  const OutputChunk& chunk() const { return state_.layout.outputs()[position().index]; }
  const float* output(int32_t i) const;
  float* output(int32_t i);  // the caller may overwrite it

  const CursorPosition& position() const { return cursor_.position(); }
  // After kStopped: the operator at the cursor and the number of its tickets.
  const Operator& op() const { return cursor_.op(); }
  int32_t num_tickets() const { return num_tickets_; }
  size_t activation_bytes() const { return state_.workspace.memory.bytes(); }

 private:
  bool Finished() const { return cursor_.done() || state_.layout.num_active() == 0; }
  void BeginOperator();
  void Advance();

  PassState state_;
  const ForwardProgram program_;
  OperatorCursor cursor_;
  int32_t num_tickets_ = 0;     // of the operator at the cursor
  bool outputs_taken_ = false;  // whether the caller has got the present chunk
};

}  // namespace skein
