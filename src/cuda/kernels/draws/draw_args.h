#pragma once

// The arguments of the kernels of draws. Pointers are addresses of the device.

#include <cstdint>

#include "cuda/kernels/args.h"

namespace skein::cuda {

// How a token is drawn from a row of logits (docs/numerics.md, "Draws"), in words of 32 bits.
struct RowDraw {
  float temperature = 0.0f;  // a normal number above 0; 0: nothing is drawn from the row
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  uint32_t random_low = 0;  // the random number times 2^53
  uint32_t random_high = 0;
};
inline constexpr int kRowDrawWords = sizeof(RowDraw) / sizeof(int32_t);

// The elements of a group of a row: kRowGroup.
inline constexpr int kDrawGroup = 256;
inline constexpr int32_t NumDrawGroups(int32_t vocab) {
  return (vocab + kDrawGroup - 1) / kDrawGroup;
}
// The most tokens that a draw with top_k, top_p or min_p chooses from. Rows that need more are left
// to the host.
inline constexpr int kMaxCandidates = 2048;

struct DrawArgs {
  const float* logits = nullptr;  // [num_rows, ldx]
  int64_t ldx = 0;
  const RowDraw* draws = nullptr;  // [num_rows]
  int32_t num_rows = 0;
  int32_t vocab = 0;
  // [num_rows]. On entry: those of FindLargest. A draw changes its row's `index` to the token, or
  // sets `left_to_host`. Rows that are not finite stay.
  RowLargest* rows = nullptr;
  // [num_rows, NumDrawGroups(vocab)]. With top_k the largest logit of each group, else the largest
  // weight.
  float* best = nullptr;
  // [num_rows, NumDrawGroups(vocab)]. Without top_k the sum of each group's weights. Draw changes
  // them to sums of all groups so far.
  double* sums = nullptr;
};

}  // namespace skein::cuda
