#include "model/forward/operators/fork_operator.h"

namespace skein {

int32_t ForkOperator::Begin(OperatorRange) {
  return static_cast<int32_t>(pass_.layout.forks().size());
}

void ForkOperator::Run(int32_t ticket) { blocks_.CopyFork(pass_.layout.forks()[ticket]); }

}  // namespace skein
