#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "kv/block_manager.h"
#include "sched/sequence.h"

namespace skein {

// How many full blocks of the prompt of `sequence` it would take from the cache now.
int32_t NumCachedBlocks(const Sequence& sequence, const BlockManager& blocks);

// Knows of each waiting sequence how much of its prompt is cached, and tells whose share has
// changed when blocks are published or evicted. Each sequence is watched by two hashes only, its
// deepest cached block's and its first missing block's, so memory is O(1) per sequence and a change
// of the cache touches only those whom it concerns: publishing a block concerns who misses it
// first, evicting one who has it as the deepest. Finds also those that would compute the same
// tokens next: the members of a sequence's group and those whose first missing block is the same.
// Not thread-safe. A change costs O(log waiting + log blocks) for each sequence concerned.
class PrefixWatch {
 public:
  // REQUIRES: its prompt is hashed; it is not in the set.
  void Insert(Sequence* sequence, const BlockManager& blocks);
  // Does nothing if it is not in the set.
  void Erase(Sequence* sequence);

  // Brings the watches to the state of `blocks`, and calls `moved(sequence, cached blocks)` for
  // each whose share has changed. The call may change the sequence's key.
  using Moved = std::function<void(Sequence*, int32_t)>;
  void Follow(const BlockManager& blocks, const Moved& moved);

  // Appends the peers of `sequence`, by key, at most `max` of its group and of the others each;
  // some may come twice.
  void Find(const Sequence& sequence, size_t max, std::vector<Sequence*>* peers) const;

  size_t size() const { return watches_.size(); }
  // Aborts unless the tables agree, and with `blocks`, whose changes have been followed.
  void CheckIntegrity(const BlockManager& blocks) const;

 private:
  struct ByKey {
    bool operator()(const Sequence* a, const Sequence* b) const { return a->key() < b->key(); }
  };
  using Table = std::unordered_map<uint64_t, std::set<Sequence*, ByKey>>;
  struct Watch {
    int32_t num_cached = 0;  // blocks
    std::optional<uint64_t> present;
    std::optional<uint64_t> missing;
    bool operator==(const Watch&) const = default;
  };

  static Watch WatchOf(const Sequence& sequence, const BlockManager& blocks);
  static void EraseFrom(Table* table, uint64_t hash, Sequence* sequence);
  void InsertAs(Sequence* sequence, const Watch& watch);
  void Rewatch(const Table& table, uint64_t hash, const BlockManager& blocks, const Moved& moved);

  std::unordered_map<const Sequence*, Watch> watches_;
  Table by_present_;
  Table by_missing_;
  Table by_group_;
};

}  // namespace skein
