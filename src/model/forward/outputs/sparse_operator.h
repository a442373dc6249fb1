#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// Makes sparse vectors of the logits of a chunk of tokens (SparseFields), some columns in a ticket.
// The vector of a row replaces the logits of its last token. The part of a row that goes on in the
// next chunk is kept in HeadRows::sparse, so no more than a chunk of logits exists at a
// time:
//
//   chunk      | a a a b b | b b b b b | b c |
//   vectors          a                    b c
//
// The tokens of a row are taken in order, so the chunks change no bit.
class SparseOperator : public Operator {
 public:
  explicit SparseOperator(PassState& pass) : pass_(pass) {}

  std::string_view name() const override { return "sparse"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  OperatorRange range_;
};

}  // namespace skein
