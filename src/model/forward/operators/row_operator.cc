#include "model/forward/operators/row_operator.h"

#include <algorithm>

namespace skein {

int32_t RowOperator::Begin(OperatorRange range) {
  range_ = range;
  return CeilDiv(range.count, kTokensPerTicket);
}

void RowOperator::Run(int32_t ticket) {
  const int32_t begin = ticket * kTokensPerTicket;
  RunRows(begin, std::min(begin + kTokensPerTicket, range_.count));
}

}  // namespace skein
