#pragma once

#include "model/forward/operators/row_operator.h"

namespace skein {

// x = (word + segment) + position, for BERT's family. The norm of x is the first layer's attn_norm.
class EncoderEmbedOperator : public RowOperator {
 public:
  explicit EncoderEmbedOperator(PassState& pass) : RowOperator(pass) {}

  std::string_view name() const override { return "encoder_embed"; }

 private:
  void RunRows(int32_t begin, int32_t end) override;
};

}  // namespace skein
