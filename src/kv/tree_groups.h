#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/chunked_hash_tree.h"

namespace skein {

// Requests of a ChunkedHashTree that share a prefix. Their vectors end at one node, or each
// continues below it with levels that no other request has. Each request is in one group.
struct TreeGroup {
  int32_t node = 0;   // the node at which the prefix ends
  int32_t depth = 0;  // levels of the prefix
  int32_t num_waiting = 0;
  int32_t num_active = 0;
  uint64_t first_arrival = 0;                  // the least arrival of the waiting requests
  ChunkedHashTree::Handle first_waiting = -1;  // the request of that arrival; -1: none waits
};

// Lists the groups of a tree, for rules that compare them. Not thread-safe.
class TreeGroups {
 public:
  // `tree` outlives this object.
  explicit TreeGroups(const ChunkedHashTree* tree) : tree_(tree) {}

  // All groups. Valid until the next call. O(nodes + requests).
  std::span<const TreeGroup> List();
  // Appends the requests of a listed group. REQUIRES: the tree has not changed since List.
  void AppendRequests(const TreeGroup& group, std::vector<ChunkedHashTree::Handle>* requests) const;
  // Another request of this request's group; nullopt if there is none.
  std::optional<ChunkedHashTree::Handle> PeerOf(ChunkedHashTree::Handle request) const;

  // The number of levels of the working set, and the sum of the levels of all active vectors.
  int64_t working_set() const { return tree_->working_set_; }
  int64_t active_levels() const { return tree_->active_levels_; }

  // Counts the levels of a union of prefixes: BeginUnion, then a call of AddToUnion for each group.
  // AddToUnion returns the number of levels that the union gains. O(nodes above the group).
  void BeginUnion();
  int32_t AddToUnion(const TreeGroup& group);

 private:
  static constexpr int32_t kRoot = 0;
  static constexpr int32_t kNone = -1;

  // Whether the node holds only one request, which then belongs to the group of the parent node.
  bool IsLone(int32_t node) const;
  template <typename Fn>
  void ForEachOf(int32_t node, const Fn& fn) const;

  const ChunkedHashTree* const tree_;
  std::vector<TreeGroup> groups_;
  std::vector<int32_t> left_;         // nodes to be visited
  std::vector<uint32_t> counted_in_;  // by node: the number of the last union that contains it
  uint32_t union_ = 0;
};

}  // namespace skein
