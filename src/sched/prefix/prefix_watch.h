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

// The number of full blocks of its prompt that `sequence` would take from the cache now.
int32_t NumCachedBlocks(const Sequence& sequence, const BlockManager& blocks);

// Knows the cached share of each waiting sequence's prompt, and reports the shares that change when
// blocks are published or evicted. Each sequence is watched by two hashes only: those of its
// deepest cached block and of its first missing block. Memory is thus O(1) per sequence, and a
// change of the cache touches only the sequences concerned. A published block concerns the
// sequences whose first missing block it is. An evicted block concerns the sequences whose deepest
// cached block it is. The watch also finds a sequence's peers, which would compute the same tokens
// next: the members of its group, and the sequences with the same first missing block. Not
// thread-safe. A change costs O(log waiting + log blocks) for each sequence concerned.
class PrefixWatch {
 public:
  // REQUIRES: the sequence's prompt is hashed; the sequence is not watched.
  void Insert(Sequence* sequence, const BlockManager& blocks);
  // Does nothing if the sequence is not watched.
  void Erase(Sequence* sequence);

  // Brings the watches to the present state of `blocks`, and calls `moved(sequence, cached blocks)`
  // for each changed share. The call may change the sequence's key.
  using Moved = std::function<void(Sequence*, int32_t)>;
  void Follow(const BlockManager& blocks, const Moved& moved);

  // Appends the peers of `sequence`, by key: at most `max` of its group and `max` with the same
  // missing block. A peer may be appended twice.
  void Find(const Sequence& sequence, size_t max, std::vector<Sequence*>* peers) const;

  size_t size() const { return watches_.size(); }
  // Aborts unless the tables agree with each other and with `blocks`. REQUIRES: Follow has seen all
  // changes of `blocks`.
  void CheckIntegrity(const BlockManager& blocks) const;

 private:
  struct ByKey {
    bool operator()(const Sequence* a, const Sequence* b) const { return a->key() < b->key(); }
  };
  using Table = std::unordered_map<uint64_t, std::set<Sequence*, ByKey>>;
  struct Watch {
    int32_t num_cached = 0;  // number of cached blocks
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
