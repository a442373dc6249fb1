#include "model/forward/outputs/output_norm_operator.h"

#include "model/forward/outputs/final_norm.h"

namespace skein {

void OutputNormOperator::RunRows(int32_t begin, int32_t end) {
  const int32_t hidden = pass_.config().hidden_size;
  // Only the output matrix of a decoder can have int8 rows.
  const bool int8 = pass_.int8() && (kind_ == OutputKind::kLogits || kind_ == OutputKind::kLabels);
  for (int32_t i = begin; i < end; ++i) {
    std::byte* h = pass_.workspace.logit_h + size_t(i) * hidden * pass_.t;
    if (kind_ == OutputKind::kActions) {
      const int32_t token = pass_.layout.OutputToken(kind_, range_.first + i);
      const float* x = pass_.workspace.x + int64_t{pass_.layout.ActiveIndex(token)} * hidden;
      pass_.kernels().Convert(x, hidden, h, pass_.weights().dtype);
      continue;
    }
    FinalNormRow(pass_, pass_.layout.OutputToken(kind_, range_.first + i), h,
                 pass_.weights().dtype);
    if (int8) pass_.Quantize(i, h, hidden);
  }
}

}  // namespace skein
