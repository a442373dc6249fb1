#pragma once

// Finds the rows of an attention call that walk together; math_body.h says how this file is used.

#include "kernels/cpu/ops.h"

namespace skein {

// Whether both rows read the same blocks in the step of kStepKeys keys. Rows of different sequences
// do so only if both see the whole step: then neither meets a key of the other.
template <class V, int32_t kStepKeys>
inline bool ShareStep(const AttentionRow& a, const AttentionRow& b, int32_t step) {
  if (a.block_table == b.block_table) return true;
  if (a.num_keys < step + kStepKeys || b.num_keys < step + kStepKeys) return false;
  for (int32_t key = step; key < step + kStepKeys; key += kKvBlockTokens) {
    if (a.block_table[key / kKvBlockTokens] != b.block_table[key / kKvBlockTokens]) return false;
  }
  return true;
}

// The end of the run of rows from `first` on that do, at most `last`.
template <class V, int32_t kStepKeys>
inline int32_t RunEnd(const AttentionRow* rows, int32_t first, int32_t last, int32_t step) {
  int32_t end = first + 1;
  while (end < last && ShareStep<V, kStepKeys>(rows[end - 1], rows[end], step)) ++end;
  return end;
}

}  // namespace skein
