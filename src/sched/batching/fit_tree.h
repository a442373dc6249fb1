#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sched/sequence.h"

namespace skein {

// Sequences in the order of their keys, each with a weight. Finds the first sequence, and the next
// sequence behind a key whose weight is at most a limit. It is a treap in which each node knows the
// least weight below it, so every operation is O(log size) expected. The treap's shape depends on
// the history of calls, but its answers depend only on its contents. Not thread-safe.
class FitTree {
 public:
  FitTree();
  ~FitTree();
  FitTree(const FitTree&) = delete;
  FitTree& operator=(const FitTree&) = delete;

  // Returns false, and changes nothing, if the key is there already.
  bool Insert(const SequenceKey& key, int32_t weight, Sequence* sequence);
  // Returns whether the key was there.
  bool Erase(const SequenceKey& key);
  bool Contains(const SequenceKey& key) const;

  // Returns null if the tree is empty.
  Sequence* First() const;
  // The first sequence behind `after` (null: from the beginning) whose weight is at most
  // `max_weight`.
  Sequence* NextFitting(const SequenceKey* after, int32_t max_weight) const;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Node;
  using NodePtr = std::unique_ptr<Node>;

  static void Update(Node* node);
  // Divides `node` into the keys below `key` and all other keys.
  static void Split(NodePtr node, const SequenceKey& key, NodePtr* below, NodePtr* rest);
  // REQUIRES: every key of `a` is below every key of `b`.
  static NodePtr Merge(NodePtr a, NodePtr b);
  static void InsertInto(NodePtr* slot, NodePtr node);
  static bool EraseFrom(NodePtr* slot, const SequenceKey& key);
  static Sequence* Fitting(const Node* node, const SequenceKey* after, int32_t max_weight);

  NodePtr root_;
  size_t size_ = 0;
  uint64_t num_inserted_ = 0;
};

}  // namespace skein
