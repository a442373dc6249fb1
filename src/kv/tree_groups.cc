#include "kv/tree_groups.h"

#include <algorithm>
#include <limits>

namespace skein {

bool TreeGroups::IsLone(int32_t node) const {
  const ChunkedHashTree::Node& it = tree_->nodes_[node];
  return it.num_waiting + it.num_active == 1 && it.parent != kRoot;
}

// Calls fn(request) for all requests of the group at `node`.
template <typename Fn>
void TreeGroups::ForEachOf(int32_t node, const Fn& fn) const {
  const auto members = [&](int32_t at) {
    for (int32_t i = tree_->nodes_[at].first_member; i != kNone; i = tree_->requests_[i].next)
      fn(i);
  };
  members(node);
  if (node == kRoot) return;
  for (int32_t i = tree_->nodes_[node].first_child; i != kNone; i = tree_->nodes_[i].next) {
    if (IsLone(i)) members(i);
  }
}

std::span<const TreeGroup> TreeGroups::List() {
  groups_.clear();
  left_.assign(1, kRoot);
  while (!left_.empty()) {
    const int32_t node = left_.back();
    left_.pop_back();
    TreeGroup group{.node = node,
                    .depth = tree_->nodes_[node].end,
                    .first_arrival = std::numeric_limits<uint64_t>::max()};
    ForEachOf(node, [&](ChunkedHashTree::Handle request) {
      const ChunkedHashTree::Entry& entry = tree_->requests_[request];
      ++(entry.active ? group.num_active : group.num_waiting);
      if (entry.active || entry.item.key.arrival >= group.first_arrival) return;
      group.first_arrival = entry.item.key.arrival;
      group.first_waiting = request;
    });
    if (group.num_active + group.num_waiting > 0) groups_.push_back(group);
    for (int32_t i = tree_->nodes_[node].first_child; i != kNone; i = tree_->nodes_[i].next) {
      if (!IsLone(i)) left_.push_back(i);
    }
  }
  return groups_;
}

void TreeGroups::AppendRequests(const TreeGroup& group,
                                std::vector<ChunkedHashTree::Handle>* requests) const {
  ForEachOf(group.node, [=](ChunkedHashTree::Handle request) { requests->push_back(request); });
}

std::optional<ChunkedHashTree::Handle> TreeGroups::PeerOf(ChunkedHashTree::Handle request) const {
  const int32_t own = tree_->requests_[request].node;
  const int32_t node = IsLone(own) ? tree_->nodes_[own].parent : own;
  const ChunkedHashTree::Node& it = tree_->nodes_[node];
  for (int32_t i = it.first_member; i != kNone; i = tree_->requests_[i].next) {
    if (i != request) return i;
  }
  for (int32_t i = it.first_child; i != kNone; i = tree_->nodes_[i].next) {
    if (i != own) return tree_->nodes_[i].witness;
  }
  return std::nullopt;
}

void TreeGroups::BeginUnion() {
  counted_in_.resize(tree_->nodes_.size());
  ++union_;
}

int32_t TreeGroups::AddToUnion(const TreeGroup& group) {
  int32_t num_levels = 0;
  for (int32_t i = group.node; i != kRoot && counted_in_[i] != union_;
       i = tree_->nodes_[i].parent) {
    counted_in_[i] = union_;
    num_levels += tree_->nodes_[i].end - tree_->nodes_[tree_->nodes_[i].parent].end;
  }
  return num_levels;
}

}  // namespace skein
