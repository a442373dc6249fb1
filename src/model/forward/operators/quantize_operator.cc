#include "model/forward/operators/quantize_operator.h"

namespace skein {

void QuantizeOperator::RunRows(int32_t begin, int32_t end) {
  const int64_t row_bytes = from_.width * static_cast<int64_t>(pass_.t);
  const std::byte* rows =
      pass_.workspace.*from_.matrix + (from_.of_batch ? range_.first * row_bytes : 0);
  for (int64_t i = begin; i < end; ++i) pass_.Quantize(i, rows + i * row_bytes, num_columns_);
}

}  // namespace skein
