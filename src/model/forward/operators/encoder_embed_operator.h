#pragma once

#include "model/forward/operator.h"
#include "model/forward/pass_state.h"

namespace skein {

// x = (word + segment) + position, for BERT's family. Its norm is the first layer's attn_norm.
class EncoderEmbedOperator : public Operator {
 public:
  explicit EncoderEmbedOperator(PassState& pass) : pass_(pass) {}

  std::string_view name() const override { return "encoder_embed"; }
  int32_t Begin(OperatorRange range) override;
  void Run(int32_t ticket) override;

 private:
  PassState& pass_;
  OperatorRange range_;
};

}  // namespace skein
