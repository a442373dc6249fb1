#include "cuda/executor/operators/layer_walk.h"

#include <algorithm>

namespace skein::cuda {

LayerWalk::Group LayerWalk::GroupOf(int op) const {
  if (!layers_.Has(kAttention) || op <= kStoreHeads) return Group::kAhead;
  if (op <= kFork) return Group::kWhole;
  return op > kGather && layers_.Gathers() ? Group::kBehind : Group::kAttention;
}

ChunkRows LayerWalk::RowsFrom(Group group, int32_t index) const {
  if (group == Group::kWhole) return {0, 0, index == 0 ? num_tokens_ : 0};
  const int32_t rows = group == Group::kBehind ? integers_.num_gathered() : num_tokens_;
  if (group == Group::kAttention && layers_.Gathers()) {
    while (index * chunk_tokens_ < rows && integers_.gathered(index).count == 0) ++index;
  }
  const int32_t first = index * chunk_tokens_;
  return {index, first, std::clamp(rows - first, 0, chunk_tokens_)};
}

int LayerWalk::From(int op) const {
  while (op < kLayerOps && !layers_.Has(op)) ++op;
  return op;
}

void LayerWalk::Begin(int32_t num_tokens) {
  num_tokens_ = num_tokens;
  at_begin_ = true;
  op_ = first_op_ = From(0);
  rows_ = RowsFrom(GroupOf(op_), 0);
}

bool LayerWalk::Next() {
  at_begin_ = false;
  const Group group = GroupOf(op_);
  const int next = From(op_ + 1);
  const bool leaves = next == kLayerOps || GroupOf(next) != group;
  op_ = next;
  if (!leaves) return true;
  const ChunkRows more = RowsFrom(group, rows_.index + 1);
  if (more.count > 0) {
    op_ = first_op_;
    rows_ = more;
    return true;
  }
  if (next == kLayerOps) return false;
  first_op_ = next;
  rows_ = RowsFrom(GroupOf(next), 0);
  return true;
}

}  // namespace skein::cuda
