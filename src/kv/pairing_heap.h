#pragma once

#include <cstdint>
#include <limits>
#include <utility>

namespace skein {

// An item of a pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986): the smallest key is at
// the root. The links are in the items. So a heap is one number, any number of heaps share a pool
// of items, and nothing allocates. The pool maps numbers to items.
inline constexpr int32_t kNoItem = std::numeric_limits<int32_t>::min();

template <typename Key>
struct HeapItem {
  Key key = {};
  int32_t child = kNoItem;
  int32_t next = kNoItem;  // sibling
  int32_t prev = kNoItem;  // sibling, or the parent of a first child
};

// The operations over a pool with ItemOf(number) -> HeapItem<Key>&. An insertion costs O(1), an
// erasure O(log items) amortized.
template <typename Pool>
class PairingHeaps {
 public:
  explicit PairingHeaps(Pool* pool) : pool_(*pool) {}

  // REQUIRES: the item is in no heap.
  void Insert(int32_t* root, int32_t item) { *root = Meld(*root, item); }

  // REQUIRES: the item is in this heap, and its key has not changed since Insert.
  void Erase(int32_t* root, int32_t item) {
    auto& it = pool_.ItemOf(item);
    const int32_t children = MergeSiblings(it.child);
    if (*root == item) {
      *root = children;
    } else {
      auto& prev = pool_.ItemOf(it.prev);
      (prev.child == item ? prev.child : prev.next) = it.next;
      if (it.next != kNoItem) pool_.ItemOf(it.next).prev = it.prev;
      *root = Meld(*root, children);
    }
    it.child = it.next = it.prev = kNoItem;
  }

 private:
  // Joins two heaps; either may be kNoItem. REQUIRES: `a` and `b` are roots.
  int32_t Meld(int32_t a, int32_t b) {
    if (a == kNoItem || b == kNoItem) return a == kNoItem ? b : a;
    if (pool_.ItemOf(b).key < pool_.ItemOf(a).key) std::swap(a, b);
    auto& top = pool_.ItemOf(a);
    auto& under = pool_.ItemOf(b);
    under.next = top.child;
    under.prev = a;
    if (top.child != kNoItem) pool_.ItemOf(top.child).prev = b;
    top.child = b;
    return a;
  }

  // Makes one heap of siblings: joins pairs from left to right, then joins all pairs from right to
  // left.
  int32_t MergeSiblings(int32_t first) {
    int32_t pairs = kNoItem;  // linked by `next`, the last pair first
    while (first != kNoItem) {
      const int32_t a = first;
      const int32_t b = Detach(a);
      first = b == kNoItem ? kNoItem : Detach(b);
      const int32_t pair = Meld(a, b);
      pool_.ItemOf(pair).next = pairs;
      pairs = pair;
    }
    int32_t root = kNoItem;
    while (pairs != kNoItem) {
      const int32_t pair = pairs;
      pairs = Detach(pair);
      root = Meld(root, pair);
    }
    return root;
  }

  // Makes a sibling a root. Returns the sibling behind it.
  int32_t Detach(int32_t item) {
    auto& it = pool_.ItemOf(item);
    it.prev = kNoItem;
    return std::exchange(it.next, kNoItem);
  }

  Pool& pool_;
};

}  // namespace skein
