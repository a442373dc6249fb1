#include "model/forward/outputs/sparse_operator.h"

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

constexpr int32_t kSparseCols = 512;  // columns of a ticket, which goes over all tokens of a chunk

// log(1 + x) in binary64, rounded.
float LogOnePlus(float x) { return static_cast<float>(std::log1p(static_cast<double>(x))); }

// The element of a logit above 0.
float Weight(const SparseFields& sparse, float logit) {
  const float weight = LogOnePlus(logit);
  return sparse.log_twice ? LogOnePlus(weight) : weight;
}

// Raises an element to a logit, if that is larger. NaNs stay.
inline void RaiseOne(float logit, float* out) {
  const bool takes = static_cast<int>(logit > *out) | static_cast<int>(logit != logit);
  *out = takes ? logit : *out;
}

// The blocks have a fixed size, so that the compiler makes vector code of them.
void Raise(const float* logits, int32_t count, float* out) {
  constexpr int32_t kBlock = 16;
  int32_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int32_t d = 0; d < kBlock; ++d) RaiseOne(logits[i + d], out + i + d);
  }
  for (; i < count; ++i) RaiseOne(logits[i], out + i);
}

// Adds the elements of the logits above 0. NaNs stay.
void AddWeights(const SparseFields& sparse, const float* logits, int32_t count, float* out) {
  for (int32_t i = 0; i < count; ++i) {
    if (!(logits[i] <= 0)) out[i] += Weight(sparse, logits[i]);
  }
}

}  // namespace

int32_t SparseOperator::Begin(OperatorRange range) {
  range_ = range;
  return CeilDiv(pass_.config().vocab_size, kSparseCols);
}

void SparseOperator::Run(int32_t ticket) {
  const SparseFields& sparse = pass_.config().encoder.sparse;
  const int32_t begin = ticket * kSparseCols;
  const int32_t count = std::min(kSparseCols, pass_.config().vocab_size - begin);
  const std::vector<SparseToken>& tokens = pass_.batch.sparse_tokens;
  float* const kept = pass_.workspace.head.sparse + begin;
  float vector[kSparseCols] = {};
  const bool goes_on = range_.first > 0 && !tokens[range_.first - 1].ends_row;
  if (goes_on) std::copy_n(kept, count, vector);
  for (int32_t i = 0; i < range_.count; ++i) {
    float* const logits = pass_.Output(i) + begin;
    sparse.sums ? AddWeights(sparse, logits, count, vector) : Raise(logits, count, vector);
    if (!tokens[range_.first + i].ends_row) continue;
    for (int32_t d = 0; d < count; ++d) {
      const bool is_weight = sparse.sums || vector[d] == 0;
      logits[d] = is_weight ? vector[d] : Weight(sparse, vector[d]);
      vector[d] = 0;
    }
  }
  std::copy_n(vector, count, kept);
}

}  // namespace skein
