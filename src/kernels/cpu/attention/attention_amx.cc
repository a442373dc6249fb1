// The attention walk of the AMX class (docs/numerics.md) on the matrix unit. avx512.cc explains the
// order of includes.

// g++ 12 warns of deliberately undefined inputs inside its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/cpu/amx_tile.h"
#include "kernels/cpu/ops.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")

#include "kernels/cpu/vec_avx512.h"
// These bodies must come after the vector type that they use.
#include "kernels/cpu/attention/attention_power_body.h"

namespace skein {
namespace {

constexpr int32_t kTileRows = 16;
constexpr int32_t kTileK = 32;         // bf16 elements in one tile row
constexpr int32_t kTileRowBytes = 64;  // of a row of any tile: 32 bf16, 16 pairs or 16 f32
constexpr int32_t kTileBytes = kTileRows * kTileRowBytes;
static_assert(kKvBlockTokens == kTileK, "a tile of weights is a block of keys");

// The attention walk of one call. A unit of rows is two tiles.
class AmxAttentionWalk : public PowerWalk<AmxAttentionWalk> {
 public:
  explicit AmxAttentionWalk(const AttentionArgs& args) : PowerWalk(args, args.head_dim_padded) {}

  void Steps(int32_t first, int32_t last, int32_t begin, int32_t end) {
    last - first > kTileRows ? ManyRows(first, last, begin, end) : FewRows(first, last, begin, end);
  }

 private:
  // Computes the weights of an item, a few keys at a time, between the products of other items.
  class Weigher {
   public:
    Weigher(AmxAttentionWalk* walk, const Item& item, const float* shift)
        : walk_(*walk), item_(item), shift_(shift) {}
    void Some() {
      if (block_ >= item_.num_blocks) return;
      const int32_t begin = row_, end = begin + 4 < item_.rows ? begin + 4 : item_.rows;
      for (int32_t r = begin; r < end; ++r) walk_.Weigh(item_, block_, r, shift_[r]);
      row_ = end < item_.rows ? end : 0;
      if (row_ == 0) ++block_;
    }
    void ThroughBlock(int32_t block) {
      while (block_ <= block && block_ < item_.num_blocks) Some();
    }

   private:
    AmxAttentionWalk& walk_;
    const Item& item_;
    const float* shift_;
    int32_t block_ = 0, row_ = 0;
  };

  // Walks steps [begin, end) of more than 16 rows, in units of up to 32 rows. Each item goes
  // through three stages (scores, weights, values). The stages of different items alternate, so
  // that the matrix unit and the vector units work at the same time. An item's scores overwrite the
  // scores of the previous item, whose weights have just been computed.
  void ManyRows(int32_t first, int32_t last, int32_t begin, int32_t end) {
    const int32_t num_units = (last - first + kUnitRows - 1) / kUnitRows;
    const int32_t unit_rows = (last - first + num_units - 1) / num_units;
    const int32_t num_items = (end - begin) / kKeysPerAmxStep * num_units;
    const auto item_at = [&](int32_t i) {
      const int32_t row = first + i % num_units * unit_rows;
      return ItemAt(row, last - row < unit_rows ? last - row : unit_rows,
                    begin + i / num_units * kKeysPerAmxStep, i % 2);
    };
    const auto nothing = [] {};
    Item former, item, next = item_at(0);
    for (int32_t b = 0; b < next.num_blocks; ++b) ScoresOfTwo(next, b, nothing);
    for (int32_t i = 0; i < num_items; ++i) {
      former = item;
      item = next;
      alignas(64) float shift[kUnitRows], factor[kUnitRows];
      int32_t panel = 0, row = 0;
      if (i > 0) {
        AddValuesOfTwo(former, 0, [&] {
          for (int n = 0; n < 4 && row < item.rows; ++n) FindLargest(item, row++);
        });
        panel = 2;
      }
      while (row < item.rows) FindLargest(item, row++);
      for (int32_t half = 0; half < item.rows; half += kTileRows) {
        MoveMaxima(item, half, shift, factor);
      }
      if (i + 1 < num_items) {
        next = item_at(i + 1);
      } else {
        next.num_blocks = 0;
      }
      Weigher weigher(this, item, shift);
      const auto weigh_some = [&] { weigher.Some(); };
      for (int32_t b = 0; b < next.num_blocks || (i > 0 && panel < num_panels_); ++b, panel += 2) {
        if (i > 0 && panel < num_panels_) AddValuesOfTwo(former, panel, weigh_some);
        if (b >= next.num_blocks) continue;
        weigher.ThroughBlock(b);
        ScoresOfTwo(next, b, weigh_some);
      }
      weigher.ThroughBlock(kBlocksPerStep);
      Rescale(item, factor);
    }
    for (int32_t p = 0; p < num_panels_; p += 2) AddValuesOfTwo(item, p, nothing);
  }

  // Walks up to 16 rows. They are bound by memory and not by the units, so the stages run one after
  // the other.
  void FewRows(int32_t first, int32_t last, int32_t begin, int32_t end) {
    for (int32_t step = begin; step < end; step += kKeysPerAmxStep) {
      const Item item = ItemAt(first, last - first, step, 0);
      ScoresOfOne(item);
      alignas(64) float shift[kTileRows], factor[kTileRows];
      for (int32_t r = 0; r < item.rows; ++r) FindLargest(item, r);
      MoveMaxima(item, 0, shift, factor);
      Weigher(this, item, shift).ThroughBlock(kBlocksPerStep);
      Rescale(item, factor);
      for (int32_t panel = 0; panel < num_panels_; panel += 4) AddValuesOfOne(item, panel);
    }
  }

  // Tiles 0 to 3 are sums, tiles 4 and 5 are rows of q or of weights, and tiles 6 and 7 are keys or
  // values. Tiles 0, 1 and 4 hold the upper rows, tiles 2, 3 and 5 the lower rows.
  void Configure(int32_t upper, int32_t lower) {
    if (upper == upper_ && lower == lower_) return;
    upper_ = upper;
    lower_ = lower;
    const int32_t tile_rows[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
    amx::TileConfig config;
    for (int t = 0; t < 8; ++t) {
      config.rows[t] = static_cast<uint8_t>(tile_rows[t]);
      config.row_bytes[t] = kTileRowBytes;
    }
    amx::LoadTileConfig(config);
  }

  // Computes q · k, not scaled yet, for the item's rows and the keys of one block. Calls `between`
  // after every four products.
  template <class Between>
  void ScoresOfTwo(const Item& item, int32_t block, const Between& between) {
    const int32_t upper = item.upper(), padded = args_.head_dim_padded;
    const int64_t q_bytes = padded * 2;
    const uint16_t* q = q_ + item.row * padded;
    const uint16_t* q_lower = q + upper * padded;
    const std::byte* k = item.blocks[block];
    const std::byte* k_second = k + args_.k_bytes / 2;
    Configure(upper, item.rows - upper);
    amx::ZeroTile<0>();
    amx::ZeroTile<1>();
    amx::ZeroTile<2>();
    amx::ZeroTile<3>();
    for (int32_t d = 0; d < padded; d += kTileK, k += kTileBytes, k_second += kTileBytes) {
      amx::LoadTileSpaced<4>(q + d, q_bytes);
      amx::LoadTileSpaced<6>(k, kTileRowBytes);
      amx::LoadTileSpaced<7>(k_second, kTileRowBytes);
      amx::LoadTileSpaced<5>(q_lower + d, q_bytes);
      amx::DotSpaced<false, 0, 4, 6>();
      amx::DotSpaced<false, 1, 4, 7>();
      amx::DotSpaced<false, 2, 5, 6>();
      amx::DotSpaced<false, 3, 5, 7>();
      between();
    }
    float* s = Scores(block);
    float* s_lower = s + upper * kKvBlockTokens;
    constexpr int64_t kBytes = kKvBlockTokens * 4;
    amx::StoreTile<0>(s, kBytes);
    amx::StoreTile<1>(s + 16, kBytes);
    amx::StoreTile<2>(s_lower, kBytes);
    amx::StoreTile<3>(s_lower + 16, kBytes);
    FinishScores(item, block);
  }

  // Computes q · k over the whole step for up to 16 rows, in four independent chains.
  void ScoresOfOne(const Item& item) {
    Configure(item.rows, item.rows);
    const uint16_t* q = q_ + item.row * args_.head_dim_padded;
    const size_t second = args_.k_bytes / 2;
    constexpr int64_t kBytes = kKvBlockTokens * 4;
    for (int32_t block = 0; block < item.num_blocks; block += 2) {
      const bool two = block + 1 < item.num_blocks;
      amx::ZeroTile<0>();
      amx::ZeroTile<1>();
      amx::ZeroTile<2>();
      amx::ZeroTile<3>();
      for (int32_t d = 0; d < args_.head_dim_padded; d += kTileK) {
        const int32_t offset = d / kTileK * kTileBytes;
        amx::LoadTile<4>(q + d, args_.head_dim_padded * 2);
        amx::LoadTile<6>(item.blocks[block] + offset, kTileRowBytes);
        amx::LoadTile<7>(item.blocks[block] + second + offset, kTileRowBytes);
        amx::DotTiles<0, 4, 6>();
        amx::DotTiles<1, 4, 7>();
        if (!two) continue;
        amx::LoadTile<6>(item.blocks[block + 1] + offset, kTileRowBytes);
        amx::LoadTile<7>(item.blocks[block + 1] + second + offset, kTileRowBytes);
        amx::DotTiles<2, 4, 6>();
        amx::DotTiles<3, 4, 7>();
      }
      float* s = Scores(block);
      amx::StoreTile<0>(s, kBytes);
      amx::StoreTile<1>(s + 16, kBytes);
      if (!two) continue;
      amx::StoreTile<2>(s + kBlockScores, kBytes);
      amx::StoreTile<3>(s + kBlockScores + 16, kBytes);
    }
    for (int32_t block = 0; block < item.num_blocks; ++block) FinishScores(item, block);
  }

  const std::byte* Values(const Item& item, int32_t block, int32_t panel) const {
    return item.blocks[block] + args_.k_bytes + panel * kTileBytes;
  }

  // acc += weights * V over two panels, of which the second may be missing. Calls `between` after
  // every four products.
  template <class Between>
  void AddValuesOfTwo(const Item& item, int32_t panel, const Between& between) {
    const int32_t upper = item.upper();
    const int64_t bytes = stride_ * 4;
    const bool pair = panel + 1 < num_panels_;
    float* c = StateAt(item.step).acc + item.row * stride_ + panel * 16;
    float* c_lower = c + upper * stride_;
    Configure(upper, item.rows - upper);
    if (item.fresh) {
      amx::ZeroTile<0>();
      amx::ZeroTile<1>();
      amx::ZeroTile<2>();
      amx::ZeroTile<3>();
    } else {
      amx::LoadTile<0>(c, bytes);
      amx::LoadTile<2>(c_lower, bytes);
      if (pair) amx::LoadTile<1>(c + 16, bytes);
      if (pair) amx::LoadTile<3>(c_lower + 16, bytes);
    }
    for (int32_t block = 0; block < item.num_blocks; ++block) {
      const uint16_t* weights = item.weights + block * kBlockScores;
      amx::LoadTileSpaced<4>(weights, kTileRowBytes);
      amx::LoadTileSpaced<6>(Values(item, block, panel), kTileRowBytes);
      amx::LoadTileSpaced<5>(weights + upper * kKvBlockTokens, kTileRowBytes);
      if (pair) amx::LoadTileSpaced<7>(Values(item, block, panel + 1), kTileRowBytes);
      amx::DotSpaced<false, 0, 4, 6>();
      amx::DotSpaced<false, 2, 5, 6>();
      if (pair) {
        amx::DotSpaced<false, 1, 4, 7>();
        amx::DotSpaced<false, 3, 5, 7>();
      }
      between();
    }
    amx::StoreTile<0>(c, bytes);
    amx::StoreTile<2>(c_lower, bytes);
    if (pair) amx::StoreTile<1>(c + 16, bytes);
    if (pair) amx::StoreTile<3>(c_lower + 16, bytes);
  }

  // acc += weights * V for up to 16 rows, over up to four panels.
  void AddValuesOfOne(const Item& item, int32_t panel) {
    const int64_t bytes = stride_ * 4;
    const int32_t panels = num_panels_ - panel;
    float* c = StateAt(item.step).acc + item.row * stride_ + panel * 16;
    if (item.fresh) {
      amx::ZeroTile<0>();
      amx::ZeroTile<1>();
      amx::ZeroTile<2>();
      amx::ZeroTile<3>();
    } else {
      amx::LoadTile<0>(c, bytes);
      if (panels > 1) amx::LoadTile<1>(c + 16, bytes);
      if (panels > 2) amx::LoadTile<2>(c + 32, bytes);
      if (panels > 3) amx::LoadTile<3>(c + 48, bytes);
    }
    for (int32_t block = 0; block < item.num_blocks; ++block) {
      const std::byte* v = Values(item, block, panel);
      amx::LoadTile<4>(item.weights + block * kBlockScores, kTileRowBytes);
      amx::LoadTile<6>(v, kTileRowBytes);
      amx::DotTiles<0, 4, 6>();
      if (panels > 1) {
        amx::LoadTile<7>(v + kTileBytes, kTileRowBytes);
        amx::DotTiles<1, 4, 7>();
      }
      if (panels > 2) {
        amx::LoadTile<6>(v + 2 * kTileBytes, kTileRowBytes);
        amx::DotTiles<2, 4, 6>();
      }
      if (panels > 3) {
        amx::LoadTile<7>(v + 3 * kTileBytes, kTileRowBytes);
        amx::DotTiles<3, 4, 7>();
      }
    }
    amx::StoreTile<0>(c, bytes);
    if (panels > 1) amx::StoreTile<1>(c + 16, bytes);
    if (panels > 2) amx::StoreTile<2>(c + 32, bytes);
    if (panels > 3) amx::StoreTile<3>(c + 48, bytes);
  }

  int32_t upper_ = 0, lower_ = 0;  // the numbers of rows in the current tile configuration
};

}  // namespace

void AmxAttention(const AttentionArgs& args) {
  AmxAttentionWalk walk(args);
  walk.Run();
  amx::ReleaseTiles();
}

}  // namespace skein
