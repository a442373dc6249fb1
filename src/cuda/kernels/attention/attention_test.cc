#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/ceil_div.h"
#include "cuda/kernels/launches.h"
#include "kernels/reference.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

struct Shape {
  DType dtype;
  int32_t num_heads, num_kv_heads, head_dim;
  int32_t keys_before = -1;  // the layer's window; -1: there is none
};

struct Sequence {
  int32_t begin, num_tokens;  // keys before `begin` are in the cache
};

// Sequences whose blocks are at random places of a memory that other requests left full of NaN.
class Attention {
 public:
  Attention(RandomValues& random, const Shape& shape, bool wide, std::vector<Sequence> sequences,
            bool has_phases = false)
      : shape_(shape), sequences_(std::move(sequences)), has_phases_(has_phases) {
    int32_t num_blocks = 3;
    for (const Sequence& s : sequences_) num_blocks += Blocks(s);
    layout_ = {shape.dtype, 1, num_blocks, shape.num_kv_heads, shape.head_dim};
    tile_rows_ = wide ? WideRows(shape.dtype, layout_.head_dim_padded()) : kAttentionRows;
    // K's padding must be zeros. Everything else is overwritten or hidden.
    const bool padded = layout_.head_dim_padded() != shape.head_dim;
    memory_.resize(layout_.total_bytes(), std::byte{0xff});
    for (size_t at = 0; padded && at < memory_.size(); at += layout_.head_bytes()) {
      std::fill_n(memory_.begin() + at, layout_.k_bytes(), std::byte{0});
    }
    std::vector<int32_t> blocks(num_blocks);
    std::iota(blocks.begin(), blocks.end(), 0);
    for (int32_t i = num_blocks - 1; i > 0; --i) std::swap(blocks[i], blocks[random.Integer(0, i)]);
    for (const Sequence& s : sequences_) Add(random, s, blocks);
    q_ = random.Floats(size_t(num_tokens_) * q_width(), shape.dtype, Range::kPlain);
  }

  // Runs the kernels. Returns [tokens, heads * head_dim].
  std::vector<float> Run(bool in_any_order) {
    const TypedArray q(q_, shape_.dtype);
    TypedArray out(std::vector<float>(q_.size(), 3.0f), shape_.dtype);
    AttentionArgs args = {.tiles = tiles_.data(),
                          .tables = tables_.data(),
                          .num_tiles = static_cast<int32_t>(tiles_.size()),
                          .tile_rows = tile_rows_,
                          .num_segments = num_segments_,
                          .keys_before = shape_.keys_before,
                          .num_heads = shape_.num_heads,
                          .num_kv_heads = shape_.num_kv_heads,
                          .head_dim = shape_.head_dim,
                          .head_dim_padded = layout_.head_dim_padded(),
                          .scale = kScale,
                          .q = q.data(),
                          .ldq = q_width(),
                          .out = out.At(0),
                          .ldo = q_width(),
                          .kv = {.pool = reinterpret_cast<uint8_t*>(memory_.data()),
                                 .num_pool_blocks = layout_.num_blocks,
                                 .block_bytes = static_cast<int64_t>(layout_.block_bytes()),
                                 .head_bytes = static_cast<int64_t>(layout_.head_bytes())}};
    std::vector<float> partial(PartialBytes(args) / sizeof(float));
    args.partial = partial.data();
    const Launch launch = AttentionLaunch(shape_.dtype, args, has_phases_);
    if (!in_any_order) {
      testing::RunOnce(launch);
    } else if (num_segments_ > 1) {
      ExpectSameInAnyOrder(launch, std::span(partial));
    } else {
      ExpectSameInAnyOrder(
          launch, std::span(static_cast<std::byte*>(out.At(0)), q_.size() * SizeOf(shape_.dtype)));
    }
    if (num_segments_ > 1) testing::RunOnce(MergeSegmentsLaunch(shape_.dtype, args));
    return out.Values();
  }

  std::vector<float> Expected() const {
    std::vector<float> expected(q_.size());
    const int32_t d = shape_.head_dim, group = shape_.num_heads / shape_.num_kv_heads;
    int32_t token = 0;
    for (size_t i = 0; i < sequences_.size(); ++i) {
      for (int32_t t = 0; t < sequences_[i].num_tokens; ++t, ++token) {
        const int32_t num_keys = sequences_[i].begin + t + 1;
        const int32_t before = shape_.keys_before < 0 ? num_keys : shape_.keys_before;
        const KeyWindow window = {std::max(0, num_keys - 1 - before), num_keys};
        for (int32_t head = 0; head < shape_.num_heads; ++head) {
          const size_t at = size_t(token) * q_width() + head * d;
          reference::Attention(
              NumericClass::kFma,
              {&q_[at], keys_[i][head / group].data(), values_[i][head / group].data(), num_keys, d,
               kScale, shape_.dtype, window},
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

  static int32_t Blocks(const Sequence& s) {
    return (s.begin + s.num_tokens + kKvBlockTokens - 1) / kKvBlockTokens;
  }
  int32_t q_width() const { return shape_.num_heads * shape_.head_dim; }

  void Add(RandomValues& random, const Sequence& s, std::vector<int32_t>& blocks) {
    const int32_t keys = s.begin + s.num_tokens;
    const auto table = static_cast<int32_t>(tables_.size());
    for (int32_t i = 0; i < Blocks(s); ++i) {
      tables_.push_back(blocks.back());
      blocks.pop_back();
    }
    keys_.emplace_back();
    values_.emplace_back();
    for (int32_t head = 0; head < shape_.num_kv_heads; ++head) {
      const size_t size = size_t(keys) * shape_.head_dim;
      keys_.back().push_back(random.Floats(size, shape_.dtype, Range::kPlain));
      values_.back().push_back(random.Floats(size, shape_.dtype, Range::kPlain));
      const TypedArray k(keys_.back().back(), shape_.dtype);
      const TypedArray v(values_.back().back(), shape_.dtype);
      for (int32_t key = 0; key < keys; ++key) {
        std::byte* base =
            memory_.data() + layout_.Offset(0, tables_[table + key / kKvBlockTokens], head);
        layout_.StoreK(base, key % kKvBlockTokens, k.At(size_t(key) * shape_.head_dim));
        layout_.StoreV(base, key % kKvBlockTokens, v.At(size_t(key) * shape_.head_dim));
      }
    }
    const int32_t rows = s.num_tokens * (shape_.num_heads / shape_.num_kv_heads);
    for (int32_t row = 0; row < rows; row += tile_rows_) {
      tiles_.push_back({num_tokens_, s.num_tokens, s.begin, table, row, keys});
    }
    num_tokens_ += s.num_tokens;
    num_segments_ = std::max(num_segments_, (keys + kKeysPerSegment - 1) / kKeysPerSegment);
  }

  const Shape shape_;
  const std::vector<Sequence> sequences_;
  const bool has_phases_;
  KvLayout layout_;
  int32_t tile_rows_ = 0;
  std::vector<std::byte> memory_;
  std::vector<std::vector<std::vector<float>>> keys_, values_;  // [sequence][KV head]
  std::vector<int32_t> tables_;
  std::vector<AttentionTile> tiles_;
  std::vector<float> q_;
  int32_t num_tokens_ = 0;
  int32_t num_segments_ = 1;
};

constexpr bool kNarrow = false, kWide = true;
constexpr Shape kShapes[] = {
    {DType::kBf16, 4, 2, 32},  {DType::kBf16, 5, 1, 8},   {DType::kBf16, 6, 2, 24},
    {DType::kBf16, 2, 2, 128}, {DType::kBf16, 34, 1, 64}, {DType::kBf16, 4, 1, 256},
    {DType::kF32, 4, 2, 16},   {DType::kF32, 3, 1, 72},   {DType::kBf16, 12, 1, 64},
    {DType::kBf16, 9, 1, 128}, {DType::kF32, 2, 1, 256},  {DType::kBf16, 2, 1, 192},
};

TEST(AttentionKernel, HasTheBitsOfTheFmaClass) {
  RandomValues random;
  for (const Shape& shape : kShapes) {
    const bool wide = random.Integer(0, 1) == 1;
    // A decode, a prompt, a chunk after a cached prefix, and a prompt that ends with a block.
    Attention attention(random, shape, wide,
                        {{random.Integer(0, 100), 1},
                         {0, random.Integer(1, 20)},
                         {random.Integer(1, 90), random.Integer(2, 12)},
                         {64, 32}});
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected()))
        << NameOf(shape.dtype) << " " << shape.num_heads << " " << shape.head_dim << " " << wide;
  }
}

// All tiles are narrow. The walks have more steps than a block has stages.
TEST(AttentionKernel, DecodesHaveTheBitsOfTheFmaClass) {
  RandomValues random;
  for (const int32_t index : {0, 3, 5, 7, 8, 9, 11}) {
    const Shape& shape = kShapes[index];
    Attention attention(random, shape, kNarrow, {{random.Integer(260, 330), 1}, {0, 1}, {63, 1}});
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected()))
        << NameOf(shape.dtype) << " " << shape.num_heads << " " << shape.head_dim;
  }
}

// Checks wide tiles: a prompt of 130 rows behind a number of cached keys in [least, most], and
// `others`.
void CheckPrompts(int32_t least, int32_t most, const std::vector<Sequence>& others,
                  bool has_phases = false) {
  RandomValues random;
  for (const int32_t index : {3, 4, 8, 9}) {
    const Shape& shape = kShapes[index];
    const int32_t group = shape.num_heads / shape.num_kv_heads;
    std::vector<Sequence> sequences = {{random.Integer(least, most), CeilDiv(130, group)}};
    sequences.insert(sequences.end(), others.begin(), others.end());
    Attention attention(random, shape, kWide, std::move(sequences), has_phases);
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected()))
        << shape.num_heads << " " << shape.head_dim;
  }
}

// Tiles of many rows, with more steps than a block has stages, that end within a word of keys, with
// one, and with a block.
TEST(AttentionKernel, PromptsHaveTheBitsOfTheFmaClass) {
  CheckPrompts(130, 250, {{190, 3}, {192, 32}});
}

// The same on GPUs whose barriers have phases: walks of one step, and of more steps than the ring
// has stages. The tile of the second sequence leaves one consumer without rows, that of the third
// leaves warps of both without.
TEST(AttentionKernel, SpecializedWarpsHaveTheBitsOfTheFmaClass) {
  CheckPrompts(330, 450, {{190, 3}, {0, 5}}, true);
}

// In the last tiles one consumer has no rows, and the rows of the other one see few of the steps.
TEST(AttentionKernel, SpecializedWarpsWalkWindowsAndSegments) {
  RandomValues random;
  for (const auto& [shape, wide] : {std::pair{Shape{DType::kBf16, 2, 2, 64, 40}, kWide},
                                    {Shape{DType::kBf16, 2, 2, 128}, kWide}}) {
    Attention attention(random, shape, wide,
                        {{kKeysPerSegment - 70, 132}, {kKeysPerSegment - 1, 2}, {64, 32}}, true);
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected())) << shape.head_dim;
  }
}

// Windows within a block, over several steps, and longer than the sequence.
TEST(AttentionKernel, WindowsHaveTheBitsOfTheFmaClass) {
  RandomValues random;
  int32_t next = 0;
  for (const int32_t before : {0, 8, 63, 150, 1000}) {
    constexpr int32_t kOf[] = {0, 6, 8, 9, 3};
    Shape shape = kShapes[kOf[next++]];
    shape.keys_before = before;
    Attention attention(random, shape, next % 2 == 0 ? kNarrow : kWide,
                        {{random.Integer(100, 300), 1},
                         {0, random.Integer(1, 20)},
                         {random.Integer(60, 200), random.Integer(2, 12)},
                         {64, 32}});
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected()))
        << NameOf(shape.dtype) << " " << before;
  }
}

TEST(AttentionKernel, WindowsMergeTheSegmentsThatTheyReach) {
  RandomValues random;
  for (const auto& [shape, wide] : {std::pair{Shape{DType::kBf16, 2, 1, 64, 5}, kNarrow},
                                    {Shape{DType::kBf16, 9, 1, 128, 70}, kWide},
                                    {Shape{DType::kF32, 2, 1, 16, kKeysPerSegment + 10}, kWide}}) {
    Attention attention(random, shape, wide,
                        {{kKeysPerSegment - 2, 14}, {3 * kKeysPerSegment + 70, 1}, {5, 2}});
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected())) << NameOf(shape.dtype);
  }
}

TEST(AttentionKernel, SegmentsMergeLeftToRight) {
  RandomValues random;
  for (const auto& [shape, wide] : {std::pair{Shape{DType::kBf16, 2, 1, 16}, kWide},
                                    {Shape{DType::kBf16, 2, 1, 64}, kWide},
                                    {Shape{DType::kF32, 2, 1, 16}, kNarrow}}) {
    Attention attention(random, shape, wide,
                        {{kKeysPerSegment - 2, 4}, {3 * kKeysPerSegment + 70, 1}, {5, 2}});
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected()))
        << NameOf(shape.dtype) << " " << shape.head_dim;
  }
}

}  // namespace
}  // namespace skein::cuda
