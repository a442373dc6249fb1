#pragma once

// Finds the rows of an attention call that walk together. math_body.h says how this file is used.

#include "kernels/cpu/ops.h"

namespace skein {

// So few rows wait for memory, and prefetch what they read next: values beside keys, and keys
// beside values.
inline constexpr int kFewWalkRows = 8;

struct KeyRange {
  int32_t begin, end;
};

// The keys that a row sees.
template <class V>
inline KeyRange VisibleKeys(const AttentionRow& row) {
  return {row.window.first, row.window.end < row.num_keys ? row.window.end : row.num_keys};
}

// The visibility bits of the 32 keys from `key` on. `key` is a multiple of kKvBlockTokens below
// row.num_keys.
template <class V>
inline uint32_t VisibleBits(const AttentionRow& row, int32_t key) {
  static_assert(kKvBlockTokens == 32);
  return row.visible == nullptr ? ~0u : row.visible[key / kKvBlockTokens];
}

// The keys that a row sees within a step of kStepKeys keys, relative to the step's first key; begin
// >= end: none. The range may hold hidden keys between visible ones.
template <class V, int32_t kStepKeys>
inline KeyRange VisibleInStep(const AttentionRow& row, int32_t step) {
  const KeyRange keys = VisibleKeys<V>(row);
  const KeyRange range = {keys.begin > step ? keys.begin - step : 0,
                          keys.end < step + kStepKeys ? keys.end - step : kStepKeys};
  if (row.visible == nullptr) return range;
  for (int32_t key = range.begin / kKvBlockTokens * kKvBlockTokens; key < range.end;
       key += kKvBlockTokens) {
    if (VisibleBits<V>(row, step + key) != 0) return range;
  }
  return {0, 0};
}

// The smallest range that holds the visible keys of all rows.
template <class V>
inline KeyRange VisibleKeysOfAll(const AttentionRow* rows, int32_t num_rows) {
  KeyRange all = VisibleKeys<V>(rows[0]);
  for (int32_t r = 1; r < num_rows; ++r) {
    const KeyRange keys = VisibleKeys<V>(rows[r]);
    if (keys.begin < all.begin) all.begin = keys.begin;
    if (keys.end > all.end) all.end = keys.end;
  }
  return all;
}

// Whether both rows have the same blocks in the step of kStepKeys keys. For rows of different
// sequences, all keys of the step must exist in both, so that neither row reads a key of the other
// sequence.
template <class V, int32_t kStepKeys>
inline bool ShareStep(const AttentionRow& a, const AttentionRow& b, int32_t step) {
  if (a.block_table == b.block_table) return true;
  if (a.num_keys < step + kStepKeys || b.num_keys < step + kStepKeys) return false;
  for (int32_t key = step; key < step + kStepKeys; key += kKvBlockTokens) {
    if (a.block_table[key / kKvBlockTokens] != b.block_table[key / kKvBlockTokens]) return false;
  }
  return true;
}

// The end (at most `last`) of the run of rows from `first` on in which neighbours share the step.
template <class V, int32_t kStepKeys>
inline int32_t RunEnd(const AttentionRow* rows, int32_t first, int32_t last, int32_t step) {
  int32_t end = first + 1;
  while (end < last && ShareStep<V, kStepKeys>(rows[end - 1], rows[end], step)) ++end;
  return end;
}

}  // namespace skein
