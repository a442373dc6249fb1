#include "model/forward/operators/embed_operator.h"

namespace skein {

void EmbedOperator::RunRows(int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end; ++i) {
    pass_.weights().EmbeddingRow(pass_.batch.tokens[i],
                                 pass_.workspace.x + size_t(i) * pass_.config().hidden_size);
  }
}

}  // namespace skein
