#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/executor/batch_extras.h"
#include "cuda/executor/tiles/prefix_finder.h"
#include "cuda/kernels/args.h"
#include "kernels/kv_layout.h"
#include "model/config/config.h"
#include "model/forward/batch.h"
#include "model/forward/context.h"
#include "model/forward/layout.h"

namespace skein::cuda {

// The tiles of attention over some tokens, as words of a DeviceBatch: offsets and numbers.
struct TileWords {
  size_t begin = 0;  // AttentionTile [count]
  int32_t count = 0;
  int32_t rows = 0;          // of a tile
  int32_t num_wide = 0;      // the others, behind them, have kAttentionRows rows at most
  int32_t num_segments = 1;  // of the longest walk
  // The walks of shared prefixes, in layers without a window: AttentionTile [num_prefixes], their
  // tokens, and SharedPrefix [count]. num_prefixes = 0: there are none.
  size_t prefixes = 0, prefix_tokens = 0, shared = 0;
  int32_t num_prefixes = 0;
  int32_t prefix_rows = 0;  // of a tile
};

// The size of AttentionArgs::partial, in bytes, that walks of shared prefixes have at most, for a
// chunk of so many tokens. num_kv_heads: of the rank; num_positions: of the longest row. 0: the
// model has none.
int64_t PrefixPartialBytes(const ModelConfig& config, int32_t num_kv_heads, int64_t num_positions,
                           int32_t chunk_tokens);

// Cuts tokens into tiles of attention.
class TileCutter {
 public:
  // The model is borrowed.
  TileCutter(const ForwardContext& model, int32_t chunk_tokens);

  // Whether prefixes are shared even if the device takes longer, by estimate. For tests.
  void set_always_shares(bool always_shares) { always_shares_ = always_shares; }

  // Appends the tiles of `runs` to `words`: adjacent tokens of one row each, ascending, of a chunk
  // that begins with `first_token`. The tiles' tokens count from there. `num_padded`: the tokens of
  // a batch of single tokens with those that pad it; 0: nothing does. The launches of a graph then
  // follow from num_padded, num_segments and num_prefixes.
  TileWords Cut(const ForwardBatch& batch, const BatchLayout& layout, const BatchExtras& extras,
                std::span<const RowSpan> runs, int32_t first_token, int32_t num_padded,
                std::vector<int32_t>* words);

 private:
  // The rows of a tile, if there are so many tokens at least.
  int32_t RowsOf(const BatchExtras& extras, std::span<const RowSpan> runs,
                 int32_t num_padded) const;
  int32_t WidestRows(const BatchExtras& extras) const;
  // Finds the prefixes that are to be shared, and where their tiles lie.
  void FindShared(const BatchLayout& layout, const BatchExtras& extras,
                  std::span<const RowSpan> runs, int32_t num_padded, TileWords* tiles);
  // Adds the tiles of the runs that are wide, or of the others.
  void AddTiles(const ForwardBatch& batch, const BatchLayout& layout, std::span<const RowSpan> runs,
                int32_t first_token, bool wide, TileWords* tiles, std::vector<int32_t>* words);
  void Pad(int32_t num_padded, TileWords* tiles, std::vector<int32_t>* words);
  void AddPrefixes(std::span<const RowSpan> runs, int32_t first_token, int32_t num_padded,
                   TileWords* tiles, std::vector<int32_t>* words);
  bool IsWide(const TileWords& tiles, const RowSpan& run) const {
    return tiles.rows > kAttentionRows && run.count * group_size_ > kAttentionRows;
  }

  const ModelConfig& config_;
  const int32_t group_size_;    // query heads of a KV head
  const KvLayout kv_layout_;    // of the rank's heads
  const int64_t prefix_bytes_;  // PrefixPartialBytes
  bool always_shares_ = false;
  PrefixFinder finder_;
  std::vector<PrefixRun> prefix_runs_;
  std::vector<int32_t> tables_;             // [runs]: where their tables begin
  std::vector<SharedPrefix> shared_;        // [runs]
  std::vector<SharedPrefix> shared_tiles_;  // [tiles]
};

}  // namespace skein::cuda
