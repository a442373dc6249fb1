#include "model/forward/operators/embed_operator.h"

#include <algorithm>

namespace skein {

int32_t EmbedOperator::Begin(OperatorRange range) {
  range_ = range;
  return CeilDiv(range.count, kTokensPerTicket);
}

void EmbedOperator::Run(int32_t ticket) {
  const int32_t begin = ticket * kTokensPerTicket;
  const int32_t end = std::min(begin + kTokensPerTicket, range_.count);
  for (int32_t i = begin; i < end; ++i) {
    pass_.weights().EmbeddingRow(pass_.batch.tokens[i],
                                 pass_.workspace.x + size_t(i) * pass_.config().hidden_size);
  }
}

}  // namespace skein
