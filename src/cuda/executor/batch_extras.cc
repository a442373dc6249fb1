#include "cuda/executor/batch_extras.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <tuple>

#include "base/ceil_div.h"
#include "model/forward/outputs/option_places.h"
#include "model/forward/relative/relative_rows.h"

namespace skein::cuda {
namespace {

bool HasOptions(const ForwardBatch& batch) {
  return std::ranges::any_of(batch.rows,
                             [](const ForwardRow& row) { return !row.option_bounds.empty(); });
}

// Appends values of words. Returns their offset.
template <typename T>
size_t Append(const std::vector<T>& values, std::vector<int32_t>* words) {
  static_assert(sizeof(T) % sizeof(int32_t) == 0);
  const size_t at = words->size(), bytes = values.size() * sizeof(T);
  words->resize(at + bytes / sizeof(int32_t));
  std::memcpy(words->data() + at, values.data(), bytes);
  return at;
}

// Appends fn(row, i) for each token i of each row. Returns their offset.
template <class Fn>
size_t AppendOfTokens(const ForwardBatch& batch, std::vector<int32_t>* words, const Fn& fn) {
  const size_t at = words->size();
  for (int32_t row = 0; row < std::ssize(batch.rows); ++row) {
    for (int32_t i = 0; i < batch.rows[row].num_tokens; ++i) words->push_back(fn(row, i));
  }
  return at;
}

// Appends the bits of the keys that each token sees. Returns their offset. before, after: the most
// keys that a token sees on either side of its own.
size_t AppendVisible(const ForwardBatch& batch, bool bidirectional, const LocalLayers* local,
                     int32_t num_words, int32_t* before, int32_t* after,
                     std::vector<int32_t>* words) {
  const size_t at = words->size();
  for (const ForwardRow& row : batch.rows) {
    const OptionPlaces places(row.option_bounds, row.begin + row.num_tokens);
    for (int32_t i = 0; i < row.num_tokens; ++i) {
      words->resize(words->size() + num_words);
      auto* bits = reinterpret_cast<uint32_t*>(words->data() + words->size() - num_words);
      int32_t first = 0, end = 0;
      const int32_t place = row.begin + i;
      places.FindVisible(place, bidirectional, local, bits, &first, &end);
      *before = std::max(*before, place - first);
      *after = std::max(*after, end - 1 - place);
    }
  }
  return at;
}

void AddVisible(const ModelConfig& config, const ForwardBatch& batch, BatchExtras* extras,
                std::vector<int32_t>* words) {
  constexpr int32_t kWordsOfStep = 2;  // of the keys that a kernel takes at a time
  int32_t num_words = 0;
  for (const ForwardRow& row : batch.rows) {
    const int32_t keys = row.begin + row.num_tokens;
    num_words = std::max(num_words, CeilDiv(keys, kWordsOfStep * 32) * kWordsOfStep);
  }
  extras->visible_words = num_words;
  int32_t before = 0, after = 0;
  extras->visible =
      AppendVisible(batch, config.bidirectional, nullptr, num_words, &before, &after, words);
  if (!config.has_local_layers()) return;
  extras->locally_visible = AppendVisible(batch, config.bidirectional, &config.local, num_words,
                                          &extras->locally_before, &extras->locally_after, words);
}

// The part of a row in a chunk of tokens [begin, end). A row that a chunk's bound cuts leaves its
// state in the slot `carried`, from which it goes on.
StateRow StateRowOf(const ForwardRow& row, int32_t begin, int32_t end, int32_t carried) {
  const int32_t row_end = row.first_token + row.num_tokens;
  const int32_t first = std::max(row.first_token, begin), part_end = std::min(row_end, end);
  StateRow out = {first - begin, part_end - first,
                  first > row.first_token ? carried : row.state.from,
                  part_end < row_end ? carried : row.state.to};
  static_assert(std::tuple_size_v<decltype(row.state.snapshots)> == StateRow::kSnapshots);
  int count = 0;
  for (const ForwardState::Snapshot& snapshot : row.state.snapshots) {
    if (snapshot.slot == ForwardState::kNone) break;
    const int32_t tokens = snapshot.at - row.begin - (first - row.first_token);
    if (tokens > 0 && tokens <= out.num_tokens) out.snapshots[count++] = {snapshot.slot, tokens};
  }
  return out;
}

// Those of all rows that have tokens in a chunk.
std::vector<StateRow> StateRowsOf(const ForwardBatch& batch, int32_t begin, int32_t end,
                                  int32_t carried) {
  std::vector<StateRow> rows;
  for (const ForwardRow& row : batch.rows) {
    if (row.first_token < end && row.first_token + row.num_tokens > begin) {
      rows.push_back(StateRowOf(row, begin, end, carried));
    }
  }
  return rows;
}

std::vector<int32_t> SlotsWrittenBy(const StateRow& row) {
  std::vector<int32_t> slots;
  if (row.to != ForwardState::kNone) slots.push_back(row.to);
  for (const StateRow::Snapshot& snapshot : row.snapshots) {
    if (snapshot.slot != ForwardState::kNone) slots.push_back(snapshot.slot);
  }
  return slots;
}

// The wave of each row. A row that reads or writes a slot comes behind the rows that write it, and
// a row that writes it behind the rows that read it.
std::vector<int32_t> WavesOf(const std::vector<StateRow>& rows) {
  std::map<int32_t, int32_t> behind_writes, behind_reads;  // by slot: the first wave behind
  std::vector<int32_t> waves;
  for (const StateRow& row : rows) {
    const std::vector<int32_t> written = SlotsWrittenBy(row);
    const bool reads = row.from != ForwardState::kNone;
    int32_t wave = reads ? behind_writes[row.from] : 0;
    for (const int32_t slot : written) {
      wave = std::max({wave, behind_writes[slot], behind_reads[slot]});
    }
    for (const int32_t slot : written) behind_writes[slot] = wave + 1;
    if (reads) {
      int32_t& behind = behind_reads[row.from];
      behind = std::max(behind, wave + 1);
    }
    waves.push_back(wave);
  }
  return waves;
}

// The rows of linear layers and their tiles, wave by wave.
class StateRows {
 public:
  // Adds the waves of a chunk with these rows. Behind the first wave come `num_padding` rows of one
  // token each, from `first_padding` on.
  void AddChunk(const std::vector<StateRow>& rows, int32_t first_padding, int32_t num_padding,
                BatchExtras* extras) {
    const std::vector<int32_t> waves = WavesOf(rows);
    StateChunk chunk = {.first_wave = static_cast<int32_t>(extras->waves.size())};
    for (; chunk.num_waves <= std::ranges::max(waves); ++chunk.num_waves) {
      StateWave of = {static_cast<int32_t>(rows_.size()), 0, static_cast<int32_t>(tiles_.size()),
                      0};
      int32_t longest = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        if (waves[i] != chunk.num_waves) continue;
        Add(rows[i]);
        longest = std::max(longest, rows[i].num_tokens);
      }
      if (chunk.num_waves == 0) {
        for (int32_t i = 0; i < num_padding; ++i) Add({first_padding + i, 1});
      }
      chunk.delta_tokens += longest;
      of.num_rows = static_cast<int32_t>(rows_.size()) - of.first_row;
      of.num_tiles = static_cast<int32_t>(tiles_.size()) - of.first_tile;
      extras->waves.push_back(of);
    }
    extras->state_chunks.push_back(chunk);
  }
  void Finish(BatchExtras* extras, std::vector<int32_t>* words) const {
    extras->state_rows = Append(rows_, words);
    extras->conv_tiles = Append(tiles_, words);
  }

 private:
  void Add(const StateRow& row) {
    for (int32_t first = 0; first < row.num_tokens; first += kConvTileTokens) {
      tiles_.push_back({static_cast<int32_t>(rows_.size()), first,
                        std::min(kConvTileTokens, row.num_tokens - first)});
    }
    rows_.push_back(row);
  }

  std::vector<StateRow> rows_;
  std::vector<ConvTile> tiles_;
};

void AddStateRows(const ForwardBatch& batch, const BatchCut& cut, BatchExtras* extras,
                  std::vector<int32_t>* words) {
  StateRows all;
  for (int32_t begin = 0; begin < batch.num_tokens(); begin += cut.chunk_tokens) {
    const int32_t end = std::min(batch.num_tokens(), begin + cut.chunk_tokens);
    all.AddChunk(StateRowsOf(batch, begin, end, cut.carried_state), end, cut.num_padding, extras);
  }
  all.Finish(extras, words);
}

// The integers of RelativeTerms.
void AddRelative(const ModelConfig& config, const ForwardBatch& batch, BatchExtras* extras,
                 std::vector<int32_t>* words) {
  for (const ForwardRow& row : batch.rows) {
    extras->relative_positions = std::max(extras->relative_positions, row.num_tokens);
  }
  const int32_t positions = extras->relative_positions;
  const RelativeRows rows(config.encoder.relative, positions);
  extras->relative_rows = words->size();
  for (int32_t distance = 1 - positions; distance < positions; ++distance) {
    words->push_back(rows.Of(distance));
  }
  const int32_t num_heads = 2 * config.num_heads, num_tokens = batch.num_tokens();
  extras->head_rows = words->size();
  for (int32_t head = 0; head < num_heads; ++head) {
    for (int32_t token = 0; token < num_tokens; ++token) {
      words->push_back(token * 3 * config.num_heads + head);
    }
  }
  extras->head_slots = words->size();
  for (int32_t slot = 0; slot < num_heads * num_tokens; ++slot) words->push_back(slot);
  extras->head_counts = words->size();
  words->insert(words->end(), num_heads, num_tokens);
}

}  // namespace

BatchExtras AddBatchExtras(const ModelConfig& config, const ForwardBatch& batch,
                           const BatchLayout& layout, const BatchCut& cut,
                           std::vector<int32_t>* words) {
  BatchExtras extras;
  extras.locally_before = config.local.before;
  extras.locally_after = config.local.after;
  const int32_t num_segments = config.encoder.num_segments;
  if (num_segments > 0) {
    extras.segments = AppendOfTokens(batch, words, [&](int32_t row, int32_t i) -> int32_t {
      return num_segments > 1 && i >= batch.rows[row].second_segment_begin ? 1 : 0;
    });
  }
  if (config.decision.num_layers > 0) {
    extras.question_types = AppendOfTokens(
        batch, words, [&](int32_t row, int32_t) { return batch.rows[row].question_type; });
  }
  if (HasOptions(batch)) {
    extras.rope_positions = AppendOfTokens(batch, words, [&](int32_t row, int32_t i) {
      return layout.RopePosition(row, batch.rows[row].first_token + i);
    });
    AddVisible(config, batch, &extras, words);
  }
  if (config.encoder.relative.span > 0) AddRelative(config, batch, &extras, words);
  if (config.has_linear_layers()) AddStateRows(batch, cut, &extras, words);
  return extras;
}

bool HasWaves(const ForwardBatch& batch) {
  const std::vector<StateRow> rows = StateRowsOf(batch, 0, batch.num_tokens(), ForwardState::kNone);
  return std::ranges::max(WavesOf(rows)) > 0;
}

}  // namespace skein::cuda
