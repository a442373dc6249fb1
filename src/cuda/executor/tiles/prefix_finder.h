#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skein::cuda {

// Adjacent tokens of a row that attend, under each KV head.
struct PrefixRun {
  std::span<const int32_t> table;  // of the row: ids of KV blocks
  int32_t begin = 0;               // the position of the first token
  int32_t num_rows = 0;            // query rows
  int32_t tile_rows = 0;           // of the tiles of its own
};

// Runs that walk the keys [0, num_keys) together: runs()[first], ..., runs()[first + count - 1].
// All of them see these keys, which are whole steps.
struct PrefixGroup {
  int32_t first = 0, count = 0;
  int32_t num_keys = 0;
};

// The shape of a launch over shared prefixes.
struct PrefixWalks {
  int32_t num_kv_heads = 0;
  int32_t tile_rows = 0;
  int32_t step_bytes = 0;  // of the keys and values of a step, under one KV head
};

// Finds the prefix groups of a batch: runs whose block tables begin with the same blocks. A run is
// in one group at most. If prefixes are nested, those are taken that leave the fewest steps to
// walk.
class PrefixFinder {
 public:
  // Sorts the runs by their block tables, and compares neighbours. `runs` are borrowed until the
  // next call.
  void Assign(std::span<const PrefixRun> runs, const PrefixWalks& walks);

  std::span<const PrefixGroup> groups() const { return groups_; }
  std::span<const int32_t> runs() const { return sorted_; }  // indices
  // The time that the groups save in a layer, by estimate: less than 0 if walks of their own are
  // faster, as where the device has too few blocks to be busy.
  double SavedUs() const;

 private:
  // Whole steps of keys that two runs share, as a number of keys.
  int32_t SharedKeys(int32_t a, int32_t b) const;
  // Adds the best groups of the sorted runs [begin, end). Returns the steps of all their blocks
  // under a KV head that the groups save.
  int64_t AddGroups(int32_t begin, int32_t end);
  int64_t TilesOf(int32_t begin, int32_t end) const;
  int32_t TilesOfGroup(int32_t begin, int32_t end) const;

  std::span<const PrefixRun> runs_;
  PrefixWalks walks_;
  std::vector<int32_t> sorted_;
  std::vector<int32_t> shared_keys_;  // [i]: of the sorted runs i and i + 1
  std::vector<PrefixGroup> groups_;
};

}  // namespace skein::cuda
