#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "kv/block_manager.h"
#include "sched/sequence.h"

namespace skein {

// Finds, for a waiting sequence, those that would compute the same tokens next: the members of its
// group and those whose first missing block is the same. Each sequence is watched by two hashes
// only, its deepest cached block's and its first missing block's, so memory is O(1) per sequence
// and a change of the cache touches only those whom it concerns. Not thread-safe.
class PrefixPeers {
 public:
  // REQUIRES: its prompt is hashed; it is not in the set.
  void Insert(Sequence* sequence, const BlockManager& blocks);
  // Does nothing if it is not in the set.
  void Erase(Sequence* sequence);
  // Moves on whoever watches a hash that became findable or ceased to be.
  void Follow(const BlockManager& blocks);

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
    std::optional<uint64_t> present;
    std::optional<uint64_t> missing;
    bool operator==(const Watch&) const = default;
  };

  static Watch WatchOf(const Sequence& sequence, const BlockManager& blocks);
  static void EraseFrom(Table* table, uint64_t hash, Sequence* sequence);
  void Rekey(const Table& table, uint64_t hash, const BlockManager& blocks);

  std::unordered_map<const Sequence*, Watch> watches_;
  Table by_present_;
  Table by_missing_;
  Table by_group_;
};

}  // namespace skein
