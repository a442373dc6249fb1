#include "model/forward/operators/output_norm_operator.h"

#include <algorithm>

#include "model/forward/operators/final_norm.h"

namespace skein {

int32_t OutputNormOperator::Begin(OperatorRange range) {
  range_ = range;
  return CeilDiv(range.count, kTokensPerTicket);
}

void OutputNormOperator::Run(int32_t ticket) {
  const int32_t hidden = pass_.config().hidden_size;
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, range_.count);
  const bool classes = kind_ == OutputKind::kClasses;
  for (int32_t i = begin; i < end; ++i) {
    std::byte* h = pass_.workspace.logit_h + size_t(i) * hidden * pass_.t;
    FinalNormRow(pass_, pass_.layout.OutputToken(kind_, range_.first + i), h,
                 pass_.weights().dtype);
    // A classifier's head is never int8.
    if (pass_.int8() && !classes) pass_.Quantize(i, h, hidden);
  }
}

}  // namespace skein
