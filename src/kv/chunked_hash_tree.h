#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "kv/chunk_hashes.h"
#include "kv/pairing_heap.h"

namespace skein {

// Finds the waiting request that best joins the decode batch, by shared prefixes (the chunked hash
// tree of FEATHER). The definitions, over the requests' hash vectors:
//
//   active       the request is in the batch; the others wait
//   working set  the (level, hash) pairs of the vectors of all active requests
//   missing      the number of levels of a waiting request's vector outside the working set
//   shared       the depth of the batch's shared prefix: the deepest level to which all active
//                vectors are equal; 0 if they differ at once or none is active
//
// Hashes are cumulative, so the levels of a request that are in the working set are its first ones,
// and the working set is a tree. The tree is path-compressed: a node stands for a run of levels
// that the same requests share. It ends at the level at which vectors differ or a vector ends.
// There are fewer than two nodes per request. An operation touches the nodes between a request's
// node and the root, but not each level:
//
//            root            active: an active request lies below (the root always is)
//           /    \           idle:   waiting requests only
//      [0, 40)  [0, 7)       missing = length - end of the deepest active node above
//       /    \ .
//  [40, 41) [40, 90)
//
// All requests of an idle subtree miss the same levels above the subtree. So each active node keeps
// a heap of its idle children and its waiting requests, by length. One more heap, the frontier,
// holds the active nodes at and below the end of the shared prefix.
//
// Integers only. Memory grows with the largest number of requests at a time (about 250 bytes each);
// below that number, no operation allocates. Two vectors with an equal hash at a level are taken to
// be equal up to that level. The only effect of a collision is that a request may seem to share
// more than it does. Not thread-safe.
class ChunkedHashTree {
 public:
  using Handle = int32_t;  // names a request in the tree; reused once the request is gone

  // The rule by which a request is the best.
  //
  // kFewestMissing is the rule as the paper states it. For requests of equal length, its choice
  // also costs the least shared depth: a request that leaves the batch's path at depth d misses
  // length - d levels. For requests of unequal length, it may cost more. Suppose that the batch
  // shares 10 chunks. A foreign request of one chunk misses 1 level, is chosen, and leaves 0 chunks
  // shared. A request with the 10 chunks and 5 more misses 5 levels, so it comes later. The stop
  // rule then sees the loss of 10 and closes the batch to both requests.
  //
  // kLeastPrefixLoss is the engine's rule: the least loss of shared depth, then the fewest missing
  // levels. If lengths are equal, the choice is the same as by kFewestMissing. It never costs a
  // loss that another request avoids.
  //
  // Both rules put the priority first, and break ties by rank, arrival and handle.
  enum class Choice { kFewestMissing, kLeastPrefixLoss };

  struct Rank {
    int32_t priority = 0;
    int64_t rank = 0;  // from the order policy
    uint64_t arrival = 0;
    auto operator<=>(const Rank&) const = default;
  };

  // The effect of adding a request.
  struct Candidate {
    Handle request = 0;
    int32_t num_missing = 0;
    int32_t shared_before = 0;  // shared depth
    int32_t shared_after = 0;
    int32_t num_peers =
        0;  // other waiting requests that share the first shared_after levels with this one
    bool operator==(const Candidate&) const = default;
  };

  explicit ChunkedHashTree(Choice choice);

  // Makes room for this number of requests, up to which nothing then allocates.
  void Reserve(int32_t num_requests);

  // Inserts a waiting request. The target of `hashes` must not change until the request is gone.
  // REQUIRES: `hashes` has at least one chunk. O(nodes above the request + log(levels))
  // comparisons.
  Handle Insert(const ChunkHashes& hashes, const Rank& rank);
  // Moves a waiting request into the batch.
  void Add(Handle request);
  // Removes an active request.
  void Finish(Handle request);
  // Removes a waiting request.
  void Remove(Handle request);

  // The best waiting request; nullopt if none waits. The result is kept until the tree changes.
  // Finding it costs O(nodes above the end of the shared prefix).
  std::optional<Candidate> FindBest();
  // The effect of adding this waiting request.
  Candidate Evaluate(Handle request) const;

  int32_t num_waiting() const { return nodes_[kRoot].num_waiting; }
  int32_t num_active() const { return nodes_[kRoot].num_active; }
  int32_t shared_depth() const { return nodes_[shared_end_].end; }
  int32_t num_nodes() const { return static_cast<int32_t>(nodes_.size() - free_nodes_.size()); }
  bool active(Handle request) const { return requests_[request].active; }

  // Aborts unless all structures agree. O(requests * levels).
  void CheckIntegrity() const;

 private:
  static constexpr int32_t kRoot = 0;
  static constexpr int32_t kNone = -1;

  // In the heap of a node, `distance` is the length of a request. In the frontier, it is the number
  // of missing levels.
  struct Key {
    int32_t priority = 0;
    int32_t distance = 0;
    int64_t rank = 0;
    uint64_t arrival = 0;
    Handle request = 0;
    auto operator<=>(const Key&) const = default;
  };
  enum class Heap : uint8_t { kNowhere, kParents, kFrontier };

  struct Node {
    int32_t parent = kNone;
    int32_t end = 0;  // the node stands for levels [parent's end, end)
    uint64_t first_hash = 0;
    Handle witness = kNone;  // a request below the node: its vector contains the node's hashes
    int32_t num_active = 0;  // counts requests at and below the node
    int32_t num_waiting = 0;
    int32_t first_child = kNone;  // active children before idle ones
    int32_t last_child = kNone;
    int32_t next = kNone;  // siblings
    int32_t prev = kNone;
    Handle first_member = kNone;    // requests whose vector ends here
    int32_t heap = kNoItem;         // holds idle children and waiting members
    Heap where = Heap::kNowhere;    // the heap that holds `item`
    bool above_shared_end = false;  // strictly above it
    HeapItem<Key> item;
  };
  struct Entry {
    ChunkHashes hashes;
    int32_t node = kNone;
    Handle next = kNone;  // members of the node
    Handle prev = kNone;
    bool active = false;
    bool in_tree = false;
    HeapItem<Key> item;
  };

  // The items of heaps are nodes and requests: a node by its index, a request by the complement of
  // its handle.
  friend class PairingHeaps<ChunkedHashTree>;
  friend class TreeGroups;
  HeapItem<Key>& ItemOf(int32_t item) {
    return item >= 0 ? nodes_[item].item : requests_[~item].item;
  }
  const HeapItem<Key>& ItemOf(int32_t item) const {
    return item >= 0 ? nodes_[item].item : requests_[~item].item;
  }
  PairingHeaps<ChunkedHashTree> heaps() { return PairingHeaps<ChunkedHashTree>(this); }

  bool IsActive(int32_t node) const { return node == kRoot || nodes_[node].num_active > 0; }
  uint64_t HashAt(Handle request, int32_t level) const { return requests_[request].hashes[level]; }

  // The slot of the child of `parent` that begins with `hash`.
  size_t SlotOf(int32_t parent, uint64_t hash) const;
  void Index(int32_t node);
  void Unindex(int32_t node);
  void GrowSlots(size_t num_slots);

  // Structure.
  int32_t Locate(Handle request);
  int32_t Split(int32_t node, int32_t level);
  int32_t NewLeaf(int32_t parent, Handle request);
  void LinkChild(int32_t node);
  void UnlinkChild(int32_t node);
  void Discard(Handle request);
  void DeleteLeaf(int32_t node);
  int32_t MergeIntoChild(int32_t node);

  // Counts, heaps and the end of the shared prefix.
  void Account(int32_t node, int32_t waiting, int32_t active);
  void Place(int32_t node);
  void TakeOut(int32_t node);
  void LowerSharedEnd();
  void RaiseSharedEnd();
  bool Better(const Candidate& a, const Candidate& b) const;
  void CheckNode(int32_t node) const;
  void CheckHeap(int32_t root, int32_t node, int64_t* num_items) const;

  const Choice choice_;
  std::vector<Node> nodes_;
  std::vector<Entry> requests_;
  std::vector<int32_t> free_nodes_;
  std::vector<Handle> free_requests_;
  // Open addressing with linear probing; the size is a power of two, at most half full.
  std::vector<int32_t> slots_;
  int32_t frontier_ = kNoItem;
  int32_t shared_end_ = kRoot;
  int64_t working_set_ = 0;    // its number of levels
  int64_t active_levels_ = 0;  // the sum of the levels of all active vectors
  bool best_is_known_ = false;
  std::optional<Candidate> best_;
};

}  // namespace skein
