#pragma once

// Attention over sequences in KV blocks: by the kernels, on the emulator, and by the reference.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/ceil_div.h"
#include "cuda/kernels/launches.h"
#include "kernels/reference.h"
#include "testing/cuda_launch.h"

namespace skein::testing {

struct AttentionHeads {
  DType dtype;
  int32_t num_heads, num_kv_heads, head_dim;
  int32_t keys_before = -1, keys_after = 0;  // those of AttentionArgs
  float soft_cap = 0;
};

// The tokens of a sequence that attend. Keys before `begin` are in the cache.
struct AttentionTokens {
  int32_t begin, num_tokens;
  int32_t keys = 0;  // AttentionTile::num_keys; 0: those up to the last token

  int32_t num_keys() const { return keys > 0 ? keys : begin + num_tokens; }
  int32_t num_stored() const { return std::max(begin + num_tokens, num_keys()); }
  int32_t num_blocks() const { return CeilDiv(num_stored(), kKvBlockTokens); }
};

enum class AttentionTiles {
  kNarrow,       // kAttentionRows
  kFourWarps,    // kFourWarpRows
  kWide,         // WideRows
  kSpecialized,  // the same on a GPU whose barriers have phases
};

// Sequences whose blocks are at random places of a memory that other requests left full of NaN.
class PagedAttention {
 public:
  // All sequences begin with the same `shared_keys` keys, in the same blocks: whole blocks.
  PagedAttention(RandomValues& random, const AttentionHeads& heads, AttentionTiles tiles,
                 std::vector<AttentionTokens> sequences, int32_t shared_keys = 0)
      : heads_(heads),
        sequences_(std::move(sequences)),
        shared_keys_(shared_keys),
        has_phases_(tiles == AttentionTiles::kSpecialized) {
    int32_t num_blocks = 3;
    for (const AttentionTokens& s : sequences_) num_blocks += s.num_blocks();
    layout_ = {heads.dtype, 1, num_blocks, heads.num_kv_heads, heads.head_dim};
    tile_rows_ = cuda::WideRows(heads.dtype, layout_.head_dim_padded());
    if (tiles == AttentionTiles::kNarrow) tile_rows_ = cuda::kAttentionRows;
    if (tiles == AttentionTiles::kFourWarps) tile_rows_ = cuda::kFourWarpRows;
    // K's padding must be zeros. Everything else is overwritten or hidden.
    const bool padded = layout_.head_dim_padded() != heads.head_dim;
    memory_.resize(layout_.total_bytes(), std::byte{0xff});
    for (size_t at = 0; padded && at < memory_.size(); at += layout_.head_bytes()) {
      std::fill_n(memory_.begin() + at, layout_.k_bytes(), std::byte{0});
    }
    std::vector<int32_t> blocks(num_blocks);
    std::iota(blocks.begin(), blocks.end(), 0);
    for (int32_t i = num_blocks - 1; i > 0; --i) std::swap(blocks[i], blocks[random.Integer(0, i)]);
    for (const AttentionTokens& s : sequences_) Add(random, s, blocks);
    q_ = random.Floats(size_t(num_tokens_) * q_width(), heads.dtype, Range::kPlain);
  }

  // Shows each token one key or more of its window, in runs with gaps of up to `longest_gap` keys
  // between them, and one token of four all keys. Each second token whose window has keys from
  // `first_shown` on sees no key before that. Bits outside of windows are random.
  void HideKeys(RandomValues& random, int32_t longest_gap, int32_t first_shown = 0) {
    for (const AttentionTokens& s : sequences_) {
      visible_words_ = std::max(visible_words_, 2 * CeilDiv(s.num_keys(), kKeysPerStep));
    }
    for (const AttentionTokens& s : sequences_) {
      for (int32_t t = 0; t < s.num_tokens; ++t) {
        for (int32_t i = 0; i < visible_words_; ++i) {
          visible_.push_back(static_cast<uint32_t>(random.Integer(INT32_MIN, INT32_MAX)));
        }
        const std::span<uint32_t> words = std::span(visible_).last(visible_words_);
        const KeyWindow window = WindowOf(s, t);
        const bool begins_later = t % 2 == 0 && first_shown < window.end;
        const int32_t first = begins_later ? std::max(window.first, first_shown) : window.first;
        const bool shows_all = random.Integer(0, 3) == 0;
        for (int32_t key = window.first; key < window.end; ++key) {
          SetBit(words, key, shows_all && key >= first);
        }
        SetBit(words, random.Integer(first, window.end - 1), true);
        for (int32_t key = first + Length(random, longest_gap); key < window.end;) {
          const int32_t end = std::min(window.end, key + Length(random, 256));
          for (; key < end; ++key) SetBit(words, key, true);
          key += Length(random, longest_gap);
        }
      }
    }
  }
  // Bits that hide nothing.
  void ShowAllKeys() {
    visible_words_ = 2 * CeilDiv(kKeysPerSegment * num_segments_, kKeysPerStep);
    visible_.assign(size_t(num_tokens_) * visible_words_, ~0u);
  }

  // Gives scores random terms, by a table of `num_rows` rows for the distances. REQUIRES: sequences
  // begin with their first tokens, and heads have their own keys.
  void AddTerms(RandomValues& random, int32_t num_rows) {
    for (const AttentionTokens& s : sequences_) positions_ = std::max(positions_, s.num_tokens);
    for (int32_t i = 0; i < 2 * positions_ - 1; ++i) {
      rows_of_distance_.push_back(random.Integer(0, num_rows - 1));
    }
    table_rows_ = num_rows;
    terms_ = random.Floats(size_t(2) * heads_.num_heads * num_tokens_ * num_rows, DType::kF32,
                           Range::kPlain);
  }

  // Gives scores random terms of distances. REQUIRES: heads have their own keys.
  void AddDistanceTerms(RandomValues& random) {
    for (const AttentionTokens& s : sequences_) distances_ = std::max(distances_, s.num_stored());
    distance_terms_ =
        random.Floats(size_t(heads_.num_heads) * distance_stride(), DType::kF32, Range::kPlain);
  }

  // Gives heads random sinks: some add next to nothing, others outweigh most keys.
  void AddSinks(RandomValues& random) {
    sinks_ = random.Floats(size_t(heads_.num_heads), DType::kF32, Range::kPlain);
    for (float& sink : sinks_) sink *= 3;
  }

  // The first `num_keys` keys are walked by all sequences together, in tiles of `tile_rows` rows.
  // Their tokens are in the reverse order of the sequences. REQUIRES: whole steps of shared keys.
  void SharePrefix(int32_t num_keys, int32_t tile_rows) {
    prefix_.rows = tile_rows;
    const int32_t group = heads_.num_heads / heads_.num_kv_heads;
    std::vector<int32_t> first_rows;
    for (size_t i = sequences_.size(); i-- > 0;) {
      first_rows.push_back(static_cast<int32_t>(prefix_.tokens.size()) * group);
      int32_t first = 0;
      for (size_t before = 0; before < i; ++before) first += sequences_[before].num_tokens;
      for (int32_t t = 0; t < sequences_[i].num_tokens; ++t) prefix_.tokens.push_back(first + t);
    }
    for (size_t i = 0; i < sequences_.size(); ++i) {
      const int32_t rows = sequences_[i].num_tokens * group;
      const size_t tiles = prefix_.of_tiles.size() + CeilDiv(rows, tile_rows_);
      prefix_.of_tiles.resize(tiles, {num_keys, first_rows[sequences_.size() - 1 - i]});
    }
    for (int32_t row = 0; row < num_tokens_ * group; row += tile_rows) {
      prefix_.tiles.push_back({0, num_tokens_, num_keys, 0, row, num_keys});
    }
  }

  // Runs the kernels. Returns [tokens, heads * head_dim].
  std::vector<float> Run(bool in_any_order) {
    const TypedArray q(q_, heads_.dtype);
    TypedArray out(std::vector<float>(q_.size(), 3.0f), heads_.dtype);
    cuda::AttentionArgs args = Args();
    args.q = q.data();
    args.out = out.At(0);
    std::vector<float> partial(cuda::PartialBytes(args) / sizeof(float));
    args.partial = partial.data();
    const std::span out_bytes(static_cast<std::byte*>(out.At(0)), q_.size() * SizeOf(heads_.dtype));
    const auto run = [&](const cuda::Launch& launch, auto memory) {
      in_any_order ? ExpectSameInAnyOrder(launch, memory) : RunOnce(launch);
    };
    std::vector<float> of_prefixes;
    if (!prefix_.tiles.empty()) {
      cuda::AttentionArgs walk = args;
      walk.tiles = prefix_.tiles.data();
      walk.num_tiles = static_cast<int32_t>(prefix_.tiles.size());
      walk.tile_rows = prefix_.rows;
      walk.tokens = prefix_.tokens.data();
      of_prefixes.resize(cuda::PartialBytes(walk) / sizeof(float));
      walk.partial = of_prefixes.data();
      run(cuda::AttentionLaunch(heads_.dtype, walk, has_phases_), std::span(of_prefixes));
      args.shared = {prefix_.of_tiles.data(), of_prefixes.data(), prefix_.rows};
    }
    const cuda::Launch launch = cuda::AttentionLaunch(heads_.dtype, args, has_phases_);
    if (num_segments_ == 1) {
      run(launch, out_bytes);
    } else {
      run(launch, std::span(partial));
      run(cuda::MergeSegmentsLaunch(heads_.dtype, args), out_bytes);
    }
    return out.Values();
  }

  std::vector<float> Expected() const {
    std::vector<float> expected(q_.size());
    const int32_t d = heads_.head_dim, group = heads_.num_heads / heads_.num_kv_heads;
    int32_t token = 0;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      const AttentionTokens& s = sequences_[i];
      for (int32_t t = 0; t < s.num_tokens; ++t, ++token) {
        KeyWindow window = WindowOf(s, t);
        const std::vector<uint32_t> visible = VisibleOf(token, &window);
        for (int32_t head = 0; head < heads_.num_heads; ++head) {
          const std::vector<float> terms = TermsOf(s, token, t, head);
          const size_t at = size_t(token) * q_width() + head * d;
          reference::Attention(
              NumericClass::kFma,
              {&q_[at], keys_[i][head / group].data(), values_[i][head / group].data(),
               s.num_keys(), d, kScale, heads_.dtype, window,
               visible.empty() ? nullptr : visible.data(), terms.empty() ? nullptr : terms.data(),
               sinks_.empty() ? AttentionRow().sink : sinks_[head], heads_.soft_cap},
              &expected[at]);
          // The device writes only positive zeros.
          for (int32_t e = 0; e < d; ++e) expected[at + e] = expected[at + e] + 0.0f;
        }
      }
    }
    return expected;
  }

 private:
  static constexpr float kScale = 0.17f;

  static void SetBit(std::span<uint32_t> words, int32_t bit, bool value) {
    const uint32_t mask = 1u << (bit % 32);
    words[bit / 32] = value ? words[bit / 32] | mask : words[bit / 32] & ~mask;
  }
  // Short ones and long ones are equally probable.
  static int32_t Length(RandomValues& random, int32_t most) {
    const int32_t limit = most >> random.Integer(0, 9);
    return random.Integer(1, std::max(1, limit));
  }

  int32_t q_width() const { return heads_.num_heads * heads_.head_dim; }

  // The keys that token t of a sequence sees, if none is hidden.
  KeyWindow WindowOf(const AttentionTokens& s, int32_t t) const {
    const int32_t position = s.begin + t, num_keys = s.num_keys();
    const int32_t first = heads_.keys_before < 0 ? 0 : std::max(0, position - heads_.keys_before);
    return {std::min(first, num_keys - 1), std::min(position + 1 + heads_.keys_after, num_keys)};
  }

  // The token's bits without those outside of its window, which then begins with a visible key.
  std::vector<uint32_t> VisibleOf(int32_t token, KeyWindow* window) const {
    if (visible_words_ == 0) return {};
    const auto begin = visible_.begin() + token * visible_words_;
    std::vector<uint32_t> words(begin, begin + visible_words_);
    const auto sees = [&](int32_t key) { return (words[key / 32] >> (key % 32) & 1) != 0; };
    while (!sees(window->first)) ++window->first;
    for (int32_t key = 0; key < 32 * visible_words_; ++key) {
      if (key < window->first || key >= window->end) SetBit(words, key, false);
    }
    return words;
  }

  // From one head's terms of distances to the next; one more than there are.
  int32_t distance_stride() const { return 2 * distances_; }

  // The terms of token t of a sequence, which is `token` of all, for each key.
  std::vector<float> TermsOf(const AttentionTokens& s, int32_t token, int32_t t,
                             int32_t head) const {
    std::vector<float> terms;
    for (int32_t key = 0; distances_ > 0 && key < s.num_stored(); ++key) {
      const int32_t at = key - (s.begin + t) + distances_ - 1;
      terms.push_back(distance_terms_[size_t(head) * distance_stride() + at]);
    }
    const auto term = [&](int32_t of_head, int32_t of_token, int32_t row) {
      return terms_[(size_t(of_head) * num_tokens_ + of_token) * table_rows_ + row];
    };
    for (int32_t key = 0; table_rows_ > 0 && key < s.num_tokens; ++key) {
      const int32_t row = rows_of_distance_[t - key + positions_ - 1];
      terms.push_back(term(head, token, row) + term(heads_.num_heads + head, token - t + key, row));
    }
    return terms;
  }

  cuda::AttentionArgs Args() {
    return {.tiles = tiles_.data(),
            .tables = tables_.data(),
            .num_tiles = static_cast<int32_t>(tiles_.size()),
            .tile_rows = tile_rows_,
            .num_segments = num_segments_,
            .keys_before = heads_.keys_before,
            .keys_after = heads_.keys_after,
            .visible = visible_words_ > 0 ? visible_.data() : nullptr,
            .visible_words = visible_words_,
            .relative = {.rows = table_rows_ > 0 ? rows_of_distance_.data() : nullptr,
                         .num_positions = positions_,
                         .num_rows = table_rows_,
                         .num_tokens = num_tokens_,
                         .terms = terms_.data()},
            .distances = {distances_ > 0 ? distance_terms_.data() : nullptr, distance_stride(),
                          distances_},
            .sinks = sinks_.empty() ? nullptr : sinks_.data(),
            .num_heads = heads_.num_heads,
            .num_kv_heads = heads_.num_kv_heads,
            .head_dim = heads_.head_dim,
            .head_dim_padded = layout_.head_dim_padded(),
            .scale = kScale,
            .soft_cap = heads_.soft_cap,
            .ldq = q_width(),
            .ldo = q_width(),
            .kv = {.pool = reinterpret_cast<uint8_t*>(memory_.data()),
                   .num_pool_blocks = layout_.num_blocks,
                   .block_bytes = static_cast<int64_t>(layout_.block_bytes()),
                   .head_bytes = static_cast<int64_t>(layout_.head_bytes())}};
  }

  void Add(RandomValues& random, const AttentionTokens& s, std::vector<int32_t>& blocks) {
    const auto table = static_cast<int32_t>(tables_.size());
    const int32_t shared_blocks = table == 0 ? 0 : shared_keys_ / kKvBlockTokens;
    for (int32_t i = 0; i < shared_blocks; ++i) tables_.push_back(tables_[i]);
    for (int32_t i = shared_blocks; i < s.num_blocks(); ++i) {
      tables_.push_back(blocks.back());
      blocks.pop_back();
    }
    keys_.emplace_back();
    values_.emplace_back();
    for (int32_t head = 0; head < heads_.num_kv_heads; ++head) {
      const size_t size = size_t(s.num_stored()) * heads_.head_dim;
      keys_.back().push_back(random.Floats(size, heads_.dtype, Range::kPlain));
      values_.back().push_back(random.Floats(size, heads_.dtype, Range::kPlain));
      if (shared_blocks > 0) {
        const size_t shared = size_t(shared_keys_) * heads_.head_dim;
        std::copy_n(keys_[0][head].begin(), shared, keys_.back().back().begin());
        std::copy_n(values_[0][head].begin(), shared, values_.back().back().begin());
      }
      const TypedArray k(keys_.back().back(), heads_.dtype);
      const TypedArray v(values_.back().back(), heads_.dtype);
      for (int32_t key = 0; key < s.num_stored(); ++key) {
        std::byte* base =
            memory_.data() + layout_.Offset(0, tables_[table + key / kKvBlockTokens], head);
        layout_.StoreK(base, key % kKvBlockTokens, k.At(size_t(key) * heads_.head_dim));
        layout_.StoreV(base, key % kKvBlockTokens, v.At(size_t(key) * heads_.head_dim));
      }
    }
    const int32_t rows = s.num_tokens * (heads_.num_heads / heads_.num_kv_heads);
    for (int32_t row = 0; row < rows; row += tile_rows_) {
      tiles_.push_back({num_tokens_, s.num_tokens, s.begin, table, row, s.num_keys()});
    }
    num_tokens_ += s.num_tokens;
    num_segments_ = std::max(num_segments_, CeilDiv(s.num_keys(), kKeysPerSegment));
  }

  const AttentionHeads heads_;
  const std::vector<AttentionTokens> sequences_;
  const int32_t shared_keys_;
  const bool has_phases_;
  KvLayout layout_;
  int32_t tile_rows_ = 0;
  std::vector<std::byte> memory_;
  std::vector<std::vector<std::vector<float>>> keys_, values_;  // [sequence][KV head]
  std::vector<int32_t> tables_;
  std::vector<cuda::AttentionTile> tiles_;
  struct Prefix {
    std::vector<cuda::AttentionTile> tiles;  // empty: each sequence walks alone
    std::vector<int32_t> tokens;
    int32_t rows = 0;                          // of a tile
    std::vector<cuda::SharedPrefix> of_tiles;  // [tiles_]
  };
  Prefix prefix_;
  std::vector<float> q_;
  int32_t num_tokens_ = 0;
  int32_t num_segments_ = 1;
  std::vector<uint32_t> visible_;  // [tokens, visible_words_]
  int32_t visible_words_ = 0;      // 0: no keys are hidden
  std::vector<float> terms_;       // RelativeTerms::terms
  std::vector<int32_t> rows_of_distance_;
  int32_t positions_ = 0;
  int32_t table_rows_ = 0;  // 0: there are no terms
  std::vector<float> distance_terms_;
  int32_t distances_ = 0;     // 0: there are no terms of distances
  std::vector<float> sinks_;  // empty: there are none
};

}  // namespace skein::testing
