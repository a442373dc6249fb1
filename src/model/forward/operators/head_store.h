#pragma once

#include "model/forward/kv_blocks.h"
#include "model/forward/pass_state.h"

namespace skein {

// Takes the finished sums of q, k and v of one layer. The heads of q and k are normed and rotated.
// q is rounded into the workspace; k and v are rounded into the KV cache.
class HeadStore {
 public:
  HeadStore(PassState& pass, int32_t layer);

  struct Bounds {
    int32_t begin, end;
  };
  // Stores rows [rows.begin, rows.end) of a range that begins with active token `first`, at columns
  // `cols` of q, k and v: whole heads. x: the sums from the first of these columns on, with row
  // stride ld. Threads may store different rows or columns at the same time.
  void Store(const Bounds& rows, const Bounds& cols, int32_t first, const float* x,
             int64_t ld) const;

 private:
  void StoreToken(const RowSpan& span, int32_t token, const Bounds& cols, const float* x) const;
  // Store the k of one head, which `call` rotates, or its v, to a slot of the block and head at
  // `base`. Int8 is rounded from f32.
  void StoreK(RotateCall call, std::byte* base, int32_t slot) const;
  void StoreV(const float* v, std::byte* base, int32_t slot) const;

  PassState& pass_;
  const LayerWeights& layer_;
  const RopeAngles* const rope_;  // null: positions are not rotated
  const int32_t rotary_dim_;
  const bool norms_;  // whether each head of q and k is normed
  const KvBlocks blocks_;
};

}  // namespace skein
