#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/kernels/args.h"
#include "model/config/config.h"
#include "model/forward/batch.h"
#include "model/forward/layout.h"

namespace skein::cuda {

// Rows of the batch, in a model with linear layers, that start from no state of each other: entries
// of BatchExtras::state_rows and conv_tiles. A wave needs the states of the waves before.
struct StateWave {
  int32_t first_row = 0, num_rows = 0;
  int32_t first_tile = 0, num_tiles = 0;
};

// The waves of a chunk (LayerWalk), whose tokens count from its first.
struct StateChunk {
  int32_t first_wave = 0, num_waves = 0;
  int32_t delta_tokens = 0;  // of the longest row of each wave
};

// Integers that only some models and batches need: offsets in the words of a DeviceBatch. 0: there
// are none.
struct BatchExtras {
  size_t rope_positions = 0;                // [tokens], if some differ from their positions
  size_t segments = 0, question_types = 0;  // [tokens]
  // Bits of keys, [tokens, visible_words]: in global layers, and in those with a window.
  size_t visible = 0, locally_visible = 0;
  int32_t visible_words = 0;
  // The keys on either side of a token's own that it sees in layers with a window, at most: more
  // than the window, where options lie between.
  int32_t locally_before = 0, locally_after = 0;
  // StateRow [rows] and ConvTile [tiles], wave by wave, chunk by chunk.
  size_t state_rows = 0, conv_tiles = 0;
  std::vector<StateWave> waves;
  std::vector<StateChunk> state_chunks;
  // RelativeTerms::rows, for distances below relative_positions.
  size_t relative_rows = 0;
  int32_t relative_positions = 0;
  // The heads of q, then those of k, in the matrix q, k, v [tokens * 3 * num_heads, head_dim], and
  // their product's GemmGroups: [2 * num_heads, tokens], slots [2 * num_heads, tokens] and counts
  // [2 * num_heads].
  size_t head_rows = 0, head_slots = 0, head_counts = 0;
};

// How the rows of a batch are cut.
struct BatchCut {
  int32_t num_padding = 0;    // tokens behind those of the batch, each a row for itself
  int32_t chunk_tokens = 0;   // with padding, there is one chunk
  int32_t carried_state = 0;  // the slot for the state of a row that goes on in the next chunk
};

// Appends them to `words`.
BatchExtras AddBatchExtras(const ModelConfig& config, const ForwardBatch& batch,
                           const BatchLayout& layout, const BatchCut& cut,
                           std::vector<int32_t>* words);

// Whether there would be several waves in a batch of one chunk.
bool HasWaves(const ForwardBatch& batch);

}  // namespace skein::cuda
