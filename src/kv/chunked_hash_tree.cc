#include "kv/chunked_hash_tree.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"

namespace skein {
namespace {

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio

size_t HomeOf(int32_t parent, uint64_t hash, size_t mask) {
  return (hash ^ (static_cast<uint64_t>(parent) * kSpread)) & mask;
}

// Returns the index of a fresh item: a free one's, else that of one behind the last. `free` has
// room for the indices of all items, so that freeing one allocates nothing.
template <typename Item>
int32_t TakeFresh(std::vector<Item>* items, std::vector<int32_t>* free) {
  if (!free->empty()) {
    const int32_t index = free->back();
    free->pop_back();
    (*items)[index] = Item{};
    return index;
  }
  items->emplace_back();
  if (free->capacity() < items->capacity()) free->reserve(items->capacity());
  return static_cast<int32_t>(items->size()) - 1;
}

}  // namespace

ChunkedHashTree::ChunkedHashTree(Choice choice) : choice_(choice) {
  TakeFresh(&nodes_, &free_nodes_);  // the root
  GrowSlots(64);
}

void ChunkedHashTree::Reserve(int32_t num_requests) {
  const size_t num_nodes = 2 * static_cast<size_t>(num_requests) + 1;
  nodes_.reserve(num_nodes);
  free_nodes_.reserve(num_nodes);
  requests_.reserve(num_requests);
  free_requests_.reserve(num_requests);
  if (2 * num_nodes > slots_.size()) GrowSlots(std::bit_ceil(2 * num_nodes));
}

ChunkedHashTree::Handle ChunkedHashTree::Insert(const ChunkHashes& hashes, const Rank& rank) {
  SKEIN_CHECK(hashes.num_chunks >= 1);
  const Handle request = TakeFresh(&requests_, &free_requests_);
  Entry& entry = requests_[request];
  entry.in_tree = true;
  entry.hashes = hashes;
  entry.item.key = {rank.priority, hashes.num_chunks, rank.rank, rank.arrival, request};
  const int32_t node = Locate(request);
  entry.node = node;
  entry.prev = kNone;
  entry.next = nodes_[node].first_member;
  if (entry.next != kNone) requests_[entry.next].prev = request;
  nodes_[node].first_member = request;
  heaps().Insert(&nodes_[node].heap, ~request);
  Account(node, 1, 0);
  return request;
}

void ChunkedHashTree::Add(Handle request) {
  Entry& entry = requests_[request];
  SKEIN_CHECK(entry.in_tree && !entry.active);
  heaps().Erase(&nodes_[entry.node].heap, ~request);
  entry.active = true;
  active_levels_ += entry.hashes.num_chunks;
  Account(entry.node, -1, 1);
  if (num_active() == 1) {
    LowerSharedEnd();
  } else {
    RaiseSharedEnd();
  }
}

void ChunkedHashTree::Finish(Handle request) {
  const Entry& entry = requests_[request];
  SKEIN_CHECK(entry.in_tree && entry.active);
  active_levels_ -= entry.hashes.num_chunks;
  Account(entry.node, 0, -1);
  if (num_active() == 0) {
    RaiseSharedEnd();
  } else {
    LowerSharedEnd();
  }
  Discard(request);
}

void ChunkedHashTree::Remove(Handle request) {
  const Entry& entry = requests_[request];
  SKEIN_CHECK(entry.in_tree && !entry.active);
  heaps().Erase(&nodes_[entry.node].heap, ~request);
  Account(entry.node, -1, 0);
  Discard(request);
}

std::optional<ChunkedHashTree::Candidate> ChunkedHashTree::FindBest() {
  if (best_is_known_) return best_;
  best_is_known_ = true;
  best_.reset();
  const auto consider = [this](int32_t heap) {
    if (heap == kNoItem) return;
    const Candidate candidate = Evaluate(ItemOf(heap).key.request);
    if (!best_ || Better(candidate, *best_)) best_ = candidate;
  };
  consider(frontier_);
  for (int32_t node = nodes_[shared_end_].parent; node != kNone; node = nodes_[node].parent) {
    consider(nodes_[node].heap);
  }
  return best_;
}

ChunkedHashTree::Candidate ChunkedHashTree::Evaluate(Handle request) const {
  const Entry& entry = requests_[request];
  SKEIN_CHECK(entry.in_tree && !entry.active);
  const int32_t length = entry.hashes.num_chunks;
  int32_t node = entry.node;
  if (num_active() == 0) {
    return {.request = request,
            .num_missing = length,
            .shared_after = length,
            .num_peers = nodes_[node].num_waiting - 1};
  }
  while (!IsActive(node)) node = nodes_[node].parent;
  const int32_t num_missing = length - nodes_[node].end;
  while (node != shared_end_ && !nodes_[node].above_shared_end) node = nodes_[node].parent;
  return {.request = request,
          .num_missing = num_missing,
          .shared_before = shared_depth(),
          .shared_after = nodes_[node].end,
          .num_peers = nodes_[node].num_waiting - 1};
}

bool ChunkedHashTree::Better(const Candidate& a, const Candidate& b) const {
  const auto order = [this](const Candidate& c) {
    const Key& key = requests_[c.request].item.key;
    const int32_t loss = choice_ == Choice::kLeastPrefixLoss ? c.shared_before - c.shared_after : 0;
    // An empty batch loses nothing: shared_after is then deeper than shared_before.
    return std::make_tuple(key.priority, std::max(loss, 0), c.num_missing, key.rank, key.arrival,
                           c.request);
  };
  return order(a) < order(b);
}

// --- Counts, heaps and the end of the shared prefix ---

// Adds to the counts of a node and of all nodes above it, and moves each of these nodes to its
// heap.
void ChunkedHashTree::Account(int32_t node, int32_t waiting, int32_t active) {
  best_is_known_ = false;
  for (; node != kNone; node = nodes_[node].parent) {
    Node& it = nodes_[node];
    const bool was_active = IsActive(node);
    it.num_waiting += waiting;
    it.num_active += active;
    if (IsActive(node) != was_active) {
      const int32_t num_levels = it.end - nodes_[it.parent].end;
      working_set_ += was_active ? -num_levels : num_levels;
      UnlinkChild(node);
      LinkChild(node);
    }
    Place(node);
  }
}

// Puts the node into its heap under its current key.
void ChunkedHashTree::Place(int32_t node) {
  Node& it = nodes_[node];
  Heap where = Heap::kNowhere;
  Key key;
  if (it.heap != kNoItem) {
    key = ItemOf(it.heap).key;
    if (!IsActive(node)) {
      where = Heap::kParents;
    } else if (!it.above_shared_end) {
      where = Heap::kFrontier;
      key.distance -= it.end;
    }
  }
  if (where == it.where && (where == Heap::kNowhere || key == it.item.key)) return;
  TakeOut(node);
  if (where == Heap::kNowhere) return;
  it.where = where;
  it.item.key = key;
  heaps().Insert(where == Heap::kParents ? &nodes_[it.parent].heap : &frontier_, node);
}

void ChunkedHashTree::TakeOut(int32_t node) {
  Node& it = nodes_[node];
  if (it.where == Heap::kNowhere) return;
  heaps().Erase(it.where == Heap::kParents ? &nodes_[it.parent].heap : &frontier_, node);
  it.where = Heap::kNowhere;
}

// Moves the end of the shared prefix down while one child holds all active requests. Active
// children come first, so only the first child can hold them.
void ChunkedHashTree::LowerSharedEnd() {
  while (true) {
    const int32_t child = nodes_[shared_end_].first_child;
    if (child == kNone || nodes_[child].num_active != num_active()) return;
    nodes_[shared_end_].above_shared_end = true;
    Place(shared_end_);
    shared_end_ = child;
  }
}

// Moves the end of the shared prefix up until all active requests lie below it. Moves it to the
// root if there are none.
void ChunkedHashTree::RaiseSharedEnd() {
  while (shared_end_ != kRoot &&
         (num_active() == 0 || nodes_[shared_end_].num_active != num_active())) {
    shared_end_ = nodes_[shared_end_].parent;
    nodes_[shared_end_].above_shared_end = false;
    Place(shared_end_);
  }
}

// --- Structure ---

// Finds or makes the node at which the request's vector ends.
int32_t ChunkedHashTree::Locate(Handle request) {
  const int32_t length = requests_[request].hashes.num_chunks;
  int32_t node = kRoot;
  int32_t depth = 0;
  while (depth < length) {
    const int32_t child = slots_[SlotOf(node, HashAt(request, depth))];
    if (child == kNone) return NewLeaf(node, request);
    const Handle witness = nodes_[child].witness;
    const int32_t end = std::min(nodes_[child].end, length);
    const auto same = [&](int32_t level) {
      return HashAt(request, level) == HashAt(witness, level);
    };
    if (end - 1 == depth || same(end - 1)) {  // the child was found by its first level
      node = end == nodes_[child].end ? child : Split(child, end);
      depth = end;
      continue;
    }
    int32_t low = depth, high = end - 1;  // equal at `low`, different at `high`
    while (high - low > 1) {
      const int32_t middle = low + (high - low) / 2;
      (same(middle) ? low : high) = middle;
    }
    return NewLeaf(Split(child, high), request);
  }
  return node;
}

int32_t ChunkedHashTree::NewLeaf(int32_t parent, Handle request) {
  const int32_t node = TakeFresh(&nodes_, &free_nodes_);
  Node& it = nodes_[node];
  it.parent = parent;
  it.end = requests_[request].hashes.num_chunks;
  it.first_hash = HashAt(request, nodes_[parent].end);
  it.witness = request;
  LinkChild(node);
  Index(node);
  return node;
}

// Splits a node at a level inside it; returns the upper part.
int32_t ChunkedHashTree::Split(int32_t node, int32_t level) {
  const int32_t upper = TakeFresh(&nodes_, &free_nodes_);
  Node& low = nodes_[node];
  Node& up = nodes_[upper];
  TakeOut(node);
  Unindex(node);
  UnlinkChild(node);
  up.parent = low.parent;
  up.end = level;
  up.first_hash = low.first_hash;
  up.witness = low.witness;
  up.num_active = low.num_active;
  up.num_waiting = low.num_waiting;
  up.above_shared_end = low.above_shared_end || node == shared_end_;
  low.parent = upper;
  low.first_hash = HashAt(low.witness, level);
  LinkChild(upper);
  LinkChild(node);
  Index(upper);
  Index(node);
  Place(node);
  Place(upper);
  return upper;
}

void ChunkedHashTree::LinkChild(int32_t node) {
  Node& it = nodes_[node];
  if (it.parent == kNone) return;
  Node& parent = nodes_[it.parent];
  const bool first = IsActive(node);
  it.next = first ? parent.first_child : kNone;
  it.prev = first ? kNone : parent.last_child;
  (it.next != kNone ? nodes_[it.next].prev : parent.last_child) = node;
  (it.prev != kNone ? nodes_[it.prev].next : parent.first_child) = node;
}

void ChunkedHashTree::UnlinkChild(int32_t node) {
  Node& it = nodes_[node];
  if (it.parent == kNone) return;
  Node& parent = nodes_[it.parent];
  (it.next != kNone ? nodes_[it.next].prev : parent.last_child) = it.prev;
  (it.prev != kNone ? nodes_[it.prev].next : parent.first_child) = it.next;
}

// Removes a request that is no longer in any count, together with the nodes that it alone needed.
void ChunkedHashTree::Discard(Handle request) {
  Entry& entry = requests_[request];
  int32_t node = entry.node;
  (entry.prev != kNone ? requests_[entry.prev].next : nodes_[node].first_member) = entry.next;
  if (entry.next != kNone) requests_[entry.next].prev = entry.prev;
  if (node != kRoot && nodes_[node].first_child == kNone && nodes_[node].first_member == kNone) {
    const int32_t parent = nodes_[node].parent;
    DeleteLeaf(node);
    node = parent;
  }
  const Node& it = nodes_[node];
  const bool one_child = it.first_child != kNone && it.first_child == it.last_child;
  if (node != kRoot && one_child && it.first_member == kNone) node = MergeIntoChild(node);
  for (; node != kRoot; node = nodes_[node].parent) {
    Node& above = nodes_[node];
    if (above.witness != request) continue;
    above.witness =
        above.first_member != kNone ? above.first_member : nodes_[above.first_child].witness;
  }
  entry.in_tree = false;
  entry.active = false;
  free_requests_.push_back(request);
}

void ChunkedHashTree::DeleteLeaf(int32_t node) {
  const Node& it = nodes_[node];
  SKEIN_CHECK(it.where == Heap::kNowhere && it.heap == kNoItem && node != shared_end_);
  SKEIN_CHECK(it.num_active == 0 && it.num_waiting == 0);
  Unindex(node);
  UnlinkChild(node);
  free_nodes_.push_back(node);
}

// Merges a node without members into its only child. Returns the child.
int32_t ChunkedHashTree::MergeIntoChild(int32_t node) {
  const int32_t child = nodes_[node].first_child;
  Node& it = nodes_[node];
  Node& low = nodes_[child];
  SKEIN_CHECK(node != shared_end_ && it.num_active == low.num_active);
  const bool idle = !IsActive(node);
  TakeOut(node);
  if (idle) TakeOut(child);
  Unindex(node);
  Unindex(child);
  UnlinkChild(node);
  low.parent = it.parent;
  low.first_hash = it.first_hash;
  LinkChild(child);
  Index(child);
  free_nodes_.push_back(node);
  Place(child);
  return child;
}

// --- Index of children ---

// The slot of the child, or the free slot for the child.
size_t ChunkedHashTree::SlotOf(int32_t parent, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HomeOf(parent, hash, mask);
  while (slots_[slot] != kNone) {
    const Node& node = nodes_[slots_[slot]];
    if (node.first_hash == hash && node.parent == parent) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void ChunkedHashTree::Index(int32_t node) {
  if (2 * nodes_.size() > slots_.size()) GrowSlots(2 * slots_.size());
  const size_t slot = SlotOf(nodes_[node].parent, nodes_[node].first_hash);
  SKEIN_CHECK(slots_[slot] == kNone);
  slots_[slot] = node;
}

void ChunkedHashTree::Unindex(int32_t node) {
  const size_t mask = slots_.size() - 1;
  size_t hole = SlotOf(nodes_[node].parent, nodes_[node].first_hash);
  SKEIN_CHECK(slots_[hole] == node);
  slots_[hole] = kNone;
  // Later entries of the probe run move back, so that no search stops at the hole before them.
  for (size_t slot = (hole + 1) & mask; slots_[slot] != kNone; slot = (slot + 1) & mask) {
    const Node& later = nodes_[slots_[slot]];
    const size_t home = HomeOf(later.parent, later.first_hash, mask);
    if (((slot - home) & mask) >= ((slot - hole) & mask)) {
      std::swap(slots_[hole], slots_[slot]);
      hole = slot;
    }
  }
}

void ChunkedHashTree::GrowSlots(size_t num_slots) {
  std::vector<int32_t> old(num_slots, kNone);
  slots_.swap(old);
  for (const int32_t node : old) {
    if (node != kNone) slots_[SlotOf(nodes_[node].parent, nodes_[node].first_hash)] = node;
  }
}

// --- Integrity ---

void ChunkedHashTree::CheckIntegrity() const {
  std::vector<bool> free(nodes_.size());
  for (const int32_t node : free_nodes_) free[node] = true;
  int64_t num_indexed = 0, num_frontier = 0, frontier_size = 0, working_set = 0;
  for (const int32_t node : slots_) num_indexed += node != kNone;
  SKEIN_CHECK(num_indexed == num_nodes() - 1);
  for (int32_t node = 0; node < std::ssize(nodes_); ++node) {
    if (free[node]) continue;
    CheckNode(node);
    num_frontier += nodes_[node].where == Heap::kFrontier;
    if (node == kRoot || !IsActive(node)) continue;
    working_set += nodes_[node].end - nodes_[nodes_[node].parent].end;
  }
  CheckHeap(frontier_, kNone, &frontier_size);
  SKEIN_CHECK(frontier_size == num_frontier);
  SKEIN_CHECK(working_set == working_set_);
  SKEIN_CHECK(std::ssize(requests_) - std::ssize(free_requests_) == num_waiting() + num_active());
  SKEIN_CHECK(num_nodes() <= 2 * (num_waiting() + num_active()) + 1);
}

void ChunkedHashTree::CheckNode(int32_t node) const {
  const Node& it = nodes_[node];
  int32_t num_waiting = 0, num_active = 0, num_children = 0, num_idle_items = 0, num_members = 0;
  bool all_active_so_far = true;
  for (int32_t child = it.first_child; child != kNone; child = nodes_[child].next) {
    const Node& below = nodes_[child];
    SKEIN_CHECK(below.parent == node && below.end > it.end);
    SKEIN_CHECK(all_active_so_far || !IsActive(child));
    all_active_so_far = IsActive(child);
    num_waiting += below.num_waiting;
    num_active += below.num_active;
    num_idle_items += !IsActive(child);
    SKEIN_CHECK(IsActive(child) != (below.where == Heap::kParents));
    ++num_children;
  }
  for (Handle member = it.first_member; member != kNone; member = requests_[member].next) {
    const Entry& entry = requests_[member];
    SKEIN_CHECK(entry.in_tree && entry.node == node && entry.hashes.num_chunks == it.end);
    (entry.active ? num_active : num_waiting) += 1;
    num_idle_items += !entry.active;
    ++num_members;
  }
  SKEIN_CHECK(num_waiting == it.num_waiting && num_active == it.num_active);
  int64_t heap_size = 0;
  CheckHeap(it.heap, node, &heap_size);
  SKEIN_CHECK(heap_size == num_idle_items);
  const bool has_all = num_active == nodes_[kRoot].num_active && num_active > 0;
  SKEIN_CHECK(has_all ? (node == shared_end_ || it.above_shared_end)
                      : (!it.above_shared_end && (node != shared_end_ || node == kRoot)));
  if (node == kRoot) return;
  SKEIN_CHECK(num_members > 0 || num_children > 1);
  SKEIN_CHECK(slots_[SlotOf(it.parent, it.first_hash)] == node);
  SKEIN_CHECK(requests_[it.witness].in_tree && requests_[it.witness].hashes.num_chunks >= it.end);
}

void ChunkedHashTree::CheckHeap(int32_t root, int32_t node, int64_t* num_items) const {
  if (root == kNoItem) return;
  std::vector<int32_t> left = {root};
  while (!left.empty()) {
    const int32_t item = left.back();
    left.pop_back();
    ++*num_items;
    if (item < 0) {
      SKEIN_CHECK(node != kNone && requests_[~item].node == node && !requests_[~item].active);
    } else {
      const Node& it = nodes_[item];
      SKEIN_CHECK(node == kNone ? it.where == Heap::kFrontier : it.parent == node);
      Key key = ItemOf(it.heap).key;
      if (node == kNone) key.distance -= it.end;
      SKEIN_CHECK(key == it.item.key);
    }
    for (int32_t child = ItemOf(item).child; child != kNoItem; child = ItemOf(child).next) {
      SKEIN_CHECK(!(ItemOf(child).key < ItemOf(item).key));
      left.push_back(child);
    }
  }
}

}  // namespace skein
