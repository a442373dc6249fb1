#include "sched/prefix/prefix_watch.h"

#include "base/check.h"

namespace skein {

int32_t NumCachedBlocks(const Sequence& sequence, const BlockManager& blocks) {
  return blocks.NumPresent(sequence.blocks.hashes(), sequence.max_cached_tokens() / kBlockTokens);
}

PrefixWatch::Watch PrefixWatch::WatchOf(const Sequence& sequence, const BlockManager& blocks) {
  const PrefixHashes& hashes = sequence.blocks.hashes();
  Watch watch = {.num_cached = NumCachedBlocks(sequence, blocks)};
  if (watch.num_cached > 0) watch.present = hashes[watch.num_cached - 1];
  if (watch.num_cached < hashes.num_blocks()) watch.missing = hashes[watch.num_cached];
  return watch;
}

void PrefixWatch::Insert(Sequence* sequence, const BlockManager& blocks) {
  InsertAs(sequence, WatchOf(*sequence, blocks));
}

void PrefixWatch::InsertAs(Sequence* sequence, const Watch& watch) {
  SKEIN_CHECK(watches_.emplace(sequence, watch).second);
  if (watch.present) by_present_[*watch.present].insert(sequence);
  if (watch.missing) by_missing_[*watch.missing].insert(sequence);
  const uint64_t group = sequence->request->request.group.id;
  if (group != 0) by_group_[group].insert(sequence);
}

void PrefixWatch::Erase(Sequence* sequence) {
  const auto found = watches_.find(sequence);
  if (found == watches_.end()) return;
  const Watch watch = found->second;
  watches_.erase(found);
  if (watch.present) EraseFrom(&by_present_, *watch.present, sequence);
  if (watch.missing) EraseFrom(&by_missing_, *watch.missing, sequence);
  const uint64_t group = sequence->request->request.group.id;
  if (group != 0) EraseFrom(&by_group_, group, sequence);
}

void PrefixWatch::EraseFrom(Table* table, uint64_t hash, Sequence* sequence) {
  const auto found = table->find(hash);
  SKEIN_CHECK(found != table->end() && found->second.erase(sequence) == 1);
  if (found->second.empty()) table->erase(found);
}

void PrefixWatch::Follow(const BlockManager& blocks, const Moved& moved) {
  for (const uint64_t hash : blocks.changes().published) Rewatch(by_missing_, hash, blocks, moved);
  for (const uint64_t hash : blocks.changes().evicted) Rewatch(by_present_, hash, blocks, moved);
}

void PrefixWatch::Rewatch(const Table& table, uint64_t hash, const BlockManager& blocks,
                          const Moved& moved) {
  const auto found = table.find(hash);
  if (found == table.end()) return;
  for (Sequence* sequence : std::set<Sequence*, ByKey>(found->second)) {
    const Watch watch = WatchOf(*sequence, blocks);
    if (watch == watches_.at(sequence)) continue;
    Erase(sequence);
    moved(sequence, watch.num_cached);
    InsertAs(sequence, watch);
  }
}

void PrefixWatch::Find(const Sequence& sequence, size_t max, std::vector<Sequence*>* peers) const {
  const auto append = [&](const Table& table, uint64_t key) {
    const auto found = table.find(key);
    if (found == table.end()) return;
    size_t count = 0;
    for (Sequence* peer : found->second) {
      if (peer == &sequence) continue;
      if (count++ == max) break;
      peers->push_back(peer);
    }
  };
  const uint64_t group = sequence.request->request.group.id;
  if (group != 0) append(by_group_, group);
  const Watch& watch = watches_.at(&sequence);
  if (watch.missing) append(by_missing_, *watch.missing);
}

void PrefixWatch::CheckIntegrity(const BlockManager& blocks) const {
  size_t num_present = 0, num_missing = 0, num_grouped = 0;
  for (const auto& [sequence, watch] : watches_) {
    SKEIN_CHECK(watch == WatchOf(*sequence, blocks));
    num_present += watch.present.has_value();
    num_missing += watch.missing.has_value();
    num_grouped += sequence->request->request.group.id != 0;
  }
  const auto count = [](const Table& table) {
    size_t size = 0;
    for (const auto& [hash, sequences] : table) size += sequences.size();
    return size;
  };
  SKEIN_CHECK(count(by_present_) == num_present && count(by_missing_) == num_missing);
  SKEIN_CHECK(count(by_group_) == num_grouped);
}

}  // namespace skein
