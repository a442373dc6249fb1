#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/executor/batch_extras.h"
#include "cuda/executor/tiles/tile_cutter.h"
#include "cuda/kernels/args.h"
#include "cuda/kernels/draws/draw_args.h"
#include "model/config/config.h"
#include "model/forward/context.h"
#include "model/forward/layout.h"
#include "model/pooling.h"
#include "sched/plan.h"

namespace skein::cuda {

// The integers that the kernels of one pass read. They are made on the host and copied to the
// device in one piece. Pointers are addresses of the device.
class DeviceBatch {
 public:
  // The outputs of a chunk: the tokens from which they are computed and, for labels, the panels of
  // the output matrix that hold the labels.
  struct Outputs {
    const int32_t* tokens = nullptr;  // [num_tokens], counting active tokens
    int32_t num_tokens = 0;           // without padding
    // [chunk.count], indices of `tokens`, if the outputs are means of rows. Null: there is one
    // token for each output.
    const RowsOfMean* means = nullptr;
    const int32_t* panels = nullptr;  // [num_panels]; only for labels
    std::vector<int32_t> panel_ids;   // the panels on the host, ascending
    // [chunk.count, and padding], only for logits. Null: nothing is drawn at random from them.
    const RowDraw* draws = nullptr;
  };

  // Tokens behind those of the batch, which no output is read from: position 0, no keys to see. So
  // the arrays but `tables` have the same places in every batch of single tokens with this padding.
  struct Padding {
    int32_t num_tokens = 0;  // of the batch, with the padding; 0: there is none
    int32_t block = 0;       // that takes their keys and values
  };

  // The tiles of attention over some tokens of a chunk (LayerWalk). Their tokens count from the
  // chunk's first.
  struct Tiles {
    const AttentionTile* on_device = nullptr;
    std::span<const AttentionTile> on_host;  // until the next Assign
    int32_t rows = 0;                        // of a tile
    int32_t num_wide = 0;      // the others, behind them, have kAttentionRows rows at most
    int32_t num_segments = 1;  // of the longest walk
    // The walks of shared prefixes, in layers without a window, and the tokens of their tiles.
    const AttentionTile* prefixes = nullptr;
    std::span<const AttentionTile> prefixes_on_host;  // until the next Assign; empty: none
    const int32_t* prefix_tokens = nullptr;
    int32_t prefix_rows = 0;                       // of a tile
    const SharedPrefix* shared = nullptr;          // of the other tiles
    std::span<const SharedPrefix> shared_on_host;  // until the next Assign; empty: none
    int32_t num_prefixes() const { return static_cast<int32_t>(prefixes_on_host.size()); }
  };

  // The active tokens of a chunk, where the last layer gathers their rows.
  struct Gathered {
    const int32_t* rows = nullptr;  // [count]: ascending; they count from the chunk's first token
    int32_t first = 0, count = 0;   // among the active tokens of the batch
    // [count], 0, 1, ...; null unless a row may lie among those that the rows go to: rows
    // [first, first + count) of the batch.
    const int32_t* in_order = nullptr;
  };

  // The device and the model's weights are borrowed. carried_state: the slot for the state of a row
  // that goes on in the next chunk.
  DeviceBatch(Device* device, const ForwardContext& model, int32_t chunk_tokens,
              int32_t carried_state);
  // TileCutter::set_always_shares.
  void set_always_shares(bool always_shares) { cutter_.set_always_shares(always_shares); }

  // Makes the integers of a batch with this layout, and starts their copy. The previous copy must
  // have ended. Outputs count the layout's active tokens, which are all of them in a batch with
  // padding. draws: of each row of logits, or empty. Fails as Device::Allocate does.
  Status Assign(const ForwardBatch& batch, const BatchLayout& layout,
                std::span<const BlockCopy> copies, const Padding& padding,
                std::span<const RowDraw> draws = {});

  // The memory of all of them; another address when it has grown.
  const void* memory() const { return on_device_.as<void>(); }
  const int32_t* tokens() const { return On<int32_t>(tokens_); }
  const int32_t* positions() const { return On<int32_t>(positions_); }
  // The positions of the rope.
  const int32_t* rope_positions() const {
    return extras_.rope_positions == 0 ? positions() : On<int32_t>(extras_.rope_positions);
  }
  // The rows of an encoder's table of segments, and of a decision model's embedding of types, for
  // each token. Null: the model has no such table.
  const int32_t* segments() const { return Extra<int32_t>(extras_.segments); }
  const int32_t* question_types() const { return Extra<int32_t>(extras_.question_types); }
  // The keys that tokens see, where rows read options side by side (AttentionArgs::visible), in
  // layers with a window or in the others. Null: no row does so.
  const uint32_t* visible(bool local) const {
    return Extra<uint32_t>(local ? extras_.locally_visible : extras_.visible);
  }
  int32_t visible_words() const { return extras_.visible_words; }
  const BatchExtras& extras() const { return extras_; }
  // In a model with linear layers: the rows with their states, wave by wave, and the tiles of their
  // tokens.
  const StateRow* state_rows() const { return Extra<StateRow>(extras_.state_rows); }
  const ConvTile* conv_tiles() const { return Extra<ConvTile>(extras_.conv_tiles); }
  // The waves of a chunk.
  std::span<const StateWave> state_waves(int32_t chunk) const {
    const StateChunk& of_chunk = extras_.state_chunks[chunk];
    return std::span(extras_.waves).subspan(of_chunk.first_wave, of_chunk.num_waves);
  }
  // Those of BatchExtras, in a model with RelativeTerms.
  struct Relative {
    const int32_t *rows, *head_rows, *head_slots, *head_counts;
  };
  Relative relative() const {
    return {Extra<int32_t>(extras_.relative_rows), Extra<int32_t>(extras_.head_rows),
            Extra<int32_t>(extras_.head_slots), Extra<int32_t>(extras_.head_counts)};
  }
  const int32_t* blocks() const { return On<int32_t>(blocks_); }
  const int32_t* tables() const { return On<int32_t>(tables_); }
  Tiles tiles(int32_t chunk) const { return TilesAt(tiles_[chunk]); }
  // The active tokens, if they are fewer than all and not none: the last layer gathers their rows.
  // Else there are none here.
  int32_t num_gathered() const { return gathered_.count; }
  Gathered gathered(int32_t chunk) const {
    const GatheredChunk& of = gathered_.chunks[chunk];
    return {On<int32_t>(of.begin), of.first, of.count,
            of.in_order ? On<int32_t>(gathered_.in_order) : nullptr};
  }
  // The tiles of a chunk's gathered tokens, and of some tokens between them.
  Tiles gathered_tiles(int32_t chunk) const { return TilesAt(gathered_.chunks[chunk].tiles); }
  const SlotCopy* forks() const { return On<SlotCopy>(forks_); }
  int32_t num_forks() const { return num_forks_; }
  const SlotCopy* copies() const { return On<SlotCopy>(copies_); }
  int32_t num_copies() const { return num_copies_; }
  const Outputs& outputs(int32_t chunk) const { return outputs_[chunk]; }

 private:
  template <typename T>
  const T* On(size_t word) const {
    return reinterpret_cast<const T*>(on_device_.as<int32_t>() + word);
  }
  template <typename T>
  const T* Extra(size_t word) const {
    return word == 0 ? nullptr : On<T>(word);
  }
  // Indices in words_, and numbers, of a chunk's gathered tokens.
  struct GatheredChunk {
    size_t begin = 0;
    int32_t first = 0, count = 0;
    bool in_order = false;
    TileWords tiles;
  };
  void AddTokens(const ForwardBatch& batch, const BatchLayout& layout, const Padding& padding);
  // Adds the tokens of a chunk of means, and which of them each mean has.
  void AddMeans(const ForwardBatch& batch, const BatchLayout& layout, const OutputChunk& chunk);
  bool IsMean(OutputKind kind) const;
  template <typename T>
  std::span<const T> OnHost(size_t word, int32_t count) const {
    return {reinterpret_cast<const T*>(words_.data() + word), static_cast<size_t>(count)};
  }
  Tiles TilesAt(const TileWords& words) const;
  // Adds the tiles of all rows, chunk by chunk, and of the tokens that pad them.
  void AddRowTiles(const ForwardBatch& batch, const BatchLayout& layout, const Padding& padding);
  // Adds the gathered tokens and their tiles, chunk by chunk.
  void AddGathered(const ForwardBatch& batch, const BatchLayout& layout);
  // Finds the runs of some active tokens. active.row: their first row, or one before it.
  void FindRuns(const ForwardBatch& batch, const BatchLayout& layout, const RowSpan& active);
  void AddOutputs(const ForwardBatch& batch, const BatchLayout& layout, const Padding& padding,
                  std::span<const RowDraw> draws);
  void AddTables(const ForwardBatch& batch, const BatchLayout& layout);
  Status Copy();

  Device* const device_;
  const ModelConfig& config_;
  const Pooling pooling_;
  const bool computes_outputs_;  // DeviceComputesOutputs
  TileCutter cutter_;
  const int32_t chunk_tokens_;
  const int32_t carried_state_;
  std::vector<int32_t> words_;
  Buffer on_host_, on_device_;
  size_t tokens_ = 0, positions_ = 0, blocks_ = 0, tables_ = 0;  // indices in words_
  BatchExtras extras_;
  size_t forks_ = 0, copies_ = 0;
  std::vector<TileWords> tiles_;  // [chunk]
  struct {
    std::vector<GatheredChunk> chunks;
    int32_t count = 0;
    size_t in_order = 0;  // index in words_
  } gathered_;
  int32_t num_forks_ = 0, num_copies_ = 0;
  std::vector<RowSpan> runs_;  // adjacent tokens of one row, ascending
  std::vector<Outputs> outputs_;
  struct OutputWords {
    size_t tokens = 0, means = 0, panels = 0, draws = 0;
  };
  std::vector<OutputWords> output_words_;  // [chunk]: indices in words_; 0: there are none
};

}  // namespace skein::cuda
