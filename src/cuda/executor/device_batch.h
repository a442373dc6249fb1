#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/kernels/args.h"
#include "model/forward/layout.h"
#include "sched/plan.h"

namespace skein::cuda {

// The integers that the kernels of one pass read. They are made on the host and copied to the
// device in one piece. Pointers are addresses of the device.
class DeviceBatch {
 public:
  // The outputs of a chunk: the tokens from which they are computed and, for labels, the panels of
  // the output matrix that hold the labels.
  struct Outputs {
    const int32_t* tokens = nullptr;  // [chunk.count], counting active tokens
    const int32_t* panels = nullptr;  // [num_panels]; only for labels
    std::vector<int32_t> panel_ids;   // the panels on the host, ascending
  };

  // Tokens behind those of the batch, which no output is read from: position 0, no keys to see. So
  // the arrays but `tables` have the same places in every batch of single tokens with this padding.
  struct Padding {
    int32_t num_tokens = 0;  // of the batch, with the padding; 0: there is none
    int32_t block = 0;       // that takes their keys and values
  };

  // The tiles of attention over some tokens.
  struct Tiles {
    const AttentionTile* on_device = nullptr;
    std::span<const AttentionTile> on_host;  // until the next Assign
    int32_t rows = 0;                        // of a tile
    int32_t num_wide = 0;      // the others, behind them, have kAttentionRows rows at most
    int32_t num_segments = 1;  // of the longest walk
  };

  // group_size: the query heads of a KV head. wide_rows: WideRows.
  DeviceBatch(Device* device, int32_t num_kv_heads, int32_t group_size, int32_t wide_rows)
      : device_(device),
        num_kv_heads_(num_kv_heads),
        group_size_(group_size),
        wide_rows_(wide_rows) {}

  // Makes the integers of a batch with this layout, and starts their copy. The previous copy must
  // have ended. Outputs count the layout's active tokens, which are all of them in a batch with
  // padding. Fails as Device::Allocate does.
  Status Assign(const ForwardBatch& batch, const BatchLayout& layout,
                std::span<const BlockCopy> copies, const Padding& padding);

  // The memory of all of them; another address when it has grown.
  const void* memory() const { return on_device_.as<void>(); }
  const int32_t* tokens() const { return On<int32_t>(tokens_); }
  const int32_t* positions() const { return On<int32_t>(positions_); }
  const int32_t* blocks() const { return On<int32_t>(blocks_); }
  const int32_t* tables() const { return On<int32_t>(tables_); }
  Tiles tiles() const { return TilesAt(tiles_); }
  // The active tokens, ascending, if they are fewer than all and not none: the last layer gathers
  // their rows. Else there are none here.
  const int32_t* gathered() const { return On<int32_t>(gathered_); }
  int32_t num_gathered() const { return num_gathered_; }
  // The tiles of the gathered tokens, and of some tokens between them.
  Tiles gathered_tiles() const { return TilesAt(gathered_tiles_); }
  const SlotCopy* forks() const { return On<SlotCopy>(forks_); }
  int32_t num_forks() const { return num_forks_; }
  const SlotCopy* copies() const { return On<SlotCopy>(copies_); }
  int32_t num_copies() const { return num_copies_; }
  const Outputs& outputs(int32_t chunk) const { return outputs_[chunk]; }

 private:
  struct TileWords {
    size_t begin = 0;  // index in words_
    int32_t count = 0, rows = 0, num_wide = 0, num_segments = 1;
  };

  template <typename T>
  const T* On(size_t word) const {
    return reinterpret_cast<const T*>(on_device_.as<int32_t>() + word);
  }
  void AddTokens(const ForwardBatch& batch, const BatchLayout& layout, const Padding& padding);
  Tiles TilesAt(const TileWords& words) const {
    return {On<AttentionTile>(words.begin),
            {reinterpret_cast<const AttentionTile*>(words_.data() + words.begin),
             static_cast<size_t>(words.count)},
            words.rows,
            words.num_wide,
            words.num_segments};
  }
  // Adds the tiles of all rows, and of the tokens that pad them.
  void AddRowTiles(const ForwardBatch& batch, const BatchLayout& layout, const Padding& padding);
  // Adds the gathered tokens and their tiles.
  void AddGathered(const ForwardBatch& batch, const BatchLayout& layout);
  // Adds the tiles of runs_. Their rows are those of tiles of `least_runs` runs, if there are
  // fewer: the others would have one token each.
  TileWords AddTiles(const BatchLayout& layout, int32_t least_runs);
  // Adds the tiles of the runs that are wide, or of the others.
  void AddTilesOf(const BatchLayout& layout, bool wide, TileWords* tiles);
  void AddOutputs(const ForwardBatch& batch, const BatchLayout& layout, const Padding& padding);
  void AddTables(const ForwardBatch& batch, const BatchLayout& layout);
  Status Copy();

  Device* const device_;
  const int32_t num_kv_heads_, group_size_, wide_rows_;
  std::vector<int32_t> words_;
  Buffer on_host_, on_device_;
  size_t tokens_ = 0, positions_ = 0, blocks_ = 0, tables_ = 0;  // indices in words_
  size_t gathered_ = 0, forks_ = 0, copies_ = 0;
  TileWords tiles_, gathered_tiles_;
  int32_t num_gathered_ = 0, num_forks_ = 0, num_copies_ = 0;
  std::vector<RowSpan> runs_;  // adjacent tokens of one row, ascending
  std::vector<Outputs> outputs_;
  std::vector<size_t> output_words_;  // [chunk]: words of tokens and panels
};

}  // namespace skein::cuda
