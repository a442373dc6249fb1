// What ForwardPass hands out: the rows of the last hidden states and their logits.

#include <algorithm>

#include "base/check.h"
#include "model/forward_pass.h"

namespace skein {

void ForwardPass::FinalNorm(int32_t ticket) {
  const size_t hidden = config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, num_logit_rows());
  for (int32_t i = begin; i < end; ++i) {
    const size_t token = batch_.logit_tokens[first_logit_row() + i];
    NormRow(context_.weights->final_norm, context_.weights->final_norm_bias,
            workspace_.x + token * hidden, workspace_.logit_h + i * hidden * t_);
  }
}

}  // namespace skein
