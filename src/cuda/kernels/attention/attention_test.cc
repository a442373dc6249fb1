#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/ceil_div.h"
#include "testing/cuda_attention.h"

namespace skein::cuda {
namespace {

using Shape = testing::AttentionHeads;
using Sequence = testing::AttentionTokens;
using Attention = testing::PagedAttention;
using testing::AttentionTiles;
using testing::RandomValues;
using testing::SameBits;
using enum testing::AttentionTiles;

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
    Attention attention(random, shape, wide ? kWide : kNarrow,
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
                  AttentionTiles tiles = kWide) {
  RandomValues random;
  for (const int32_t index : {3, 4, 8, 9}) {
    const Shape& shape = kShapes[index];
    const int32_t group = shape.num_heads / shape.num_kv_heads;
    std::vector<Sequence> sequences = {{random.Integer(least, most), CeilDiv(130, group)}};
    sequences.insert(sequences.end(), others.begin(), others.end());
    Attention attention(random, shape, tiles, std::move(sequences));
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
  CheckPrompts(330, 450, {{190, 3}, {0, 5}}, kSpecialized);
}

// In the last tiles one consumer has no rows, and the rows of the other one see few of the steps.
TEST(AttentionKernel, SpecializedWarpsWalkWindowsAndSegments) {
  RandomValues random;
  for (const Shape& shape : {Shape{DType::kBf16, 2, 2, 64, 40}, Shape{DType::kBf16, 2, 2, 128}}) {
    Attention attention(random, shape, kSpecialized,
                        {{kKeysPerSegment - 70, 132}, {kKeysPerSegment - 1, 2}, {64, 32}});
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
  for (const auto& [shape, tiles] : {std::pair{Shape{DType::kBf16, 2, 1, 64, 5}, kNarrow},
                                     {Shape{DType::kBf16, 9, 1, 128, 70}, kWide},
                                     {Shape{DType::kF32, 2, 1, 16, kKeysPerSegment + 10}, kWide}}) {
    Attention attention(random, shape, tiles,
                        {{kKeysPerSegment - 2, 14}, {3 * kKeysPerSegment + 70, 1}, {5, 2}});
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected())) << NameOf(shape.dtype);
  }
}

TEST(AttentionKernel, SegmentsMergeLeftToRight) {
  RandomValues random;
  for (const auto& [shape, tiles] : {std::pair{Shape{DType::kBf16, 2, 1, 16}, kWide},
                                     {Shape{DType::kBf16, 2, 1, 64}, kWide},
                                     {Shape{DType::kF32, 2, 1, 16}, kNarrow}}) {
    Attention attention(random, shape, tiles,
                        {{kKeysPerSegment - 2, 4}, {3 * kKeysPerSegment + 70, 1}, {5, 2}});
    EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected()))
        << NameOf(shape.dtype) << " " << shape.head_dim;
  }
}

// Each kernel: heads of a common width, of others, and heads of several parts.
constexpr std::pair<Shape, testing::AttentionTiles> kTiledHeads[] = {
    {{DType::kBf16, 4, 2, 64}, kNarrow},       {{DType::kBf16, 6, 2, 128}, kNarrow},
    {{DType::kBf16, 10, 2, 64}, kFourWarps},   {{DType::kBf16, 4, 1, 64}, kWide},
    {{DType::kBf16, 6, 2, 128}, kWide},        {{DType::kBf16, 4, 1, 64}, kSpecialized},
    {{DType::kBf16, 6, 2, 128}, kSpecialized}, {{DType::kBf16, 6, 2, 24}, kWide},
    {{DType::kBf16, 4, 2, 256}, kNarrow},      {{DType::kF32, 4, 2, 16}, kWide},
};

// A window that ends before some of the keys, and none.
TEST(AttentionKernel, SinksTakePartAtTheEnd) {
  RandomValues random;
  for (const auto& [kernel, tiles] : kTiledHeads) {
    for (const int32_t before : {-1, 40}) {
      Shape shape = kernel;
      shape.keys_before = before;
      Attention attention(random, shape, tiles, {{random.Integer(60, 150), 9}, {0, 40}, {70, 1}});
      attention.AddSinks(random);
      EXPECT_TRUE(SameBits(attention.Run(before > 0), attention.Expected()))
          << NameOf(shape.dtype) << " " << shape.head_dim << " " << before;
    }
  }
}

TEST(AttentionKernel, SinksTakePartBehindAllSegments) {
  RandomValues random;
  for (const auto& [shape, tiles] : kTiledHeads) {
    if (shape.head_dim == 128) continue;
    Attention attention(random, shape, tiles, {{kKeysPerSegment - 2, 5}, {5, 2}});
    attention.AddSinks(random);
    EXPECT_TRUE(SameBits(attention.Run(false), attention.Expected()))
        << NameOf(shape.dtype) << " " << shape.head_dim;
  }
}

// Caps of about the largest scores, and much smaller: then most are next to the cap.
TEST(AttentionKernel, CapsHaveTheBitsOfTheFmaClass) {
  RandomValues random;
  for (const auto& [kernel, tiles] : kTiledHeads) {
    if (tiles == kSpecialized) continue;
    for (const float cap : {4.0f, 0.3f}) {
      Shape shape = kernel;
      shape.soft_cap = cap;
      if (cap < 1) shape.keys_before = 50;
      Attention attention(random, shape, tiles == kWide ? kFourWarps : tiles,
                          {{random.Integer(60, 150), 9}, {0, 40}, {kKeysPerSegment - 2, 5}});
      EXPECT_TRUE(SameBits(attention.Run(false), attention.Expected()))
          << NameOf(shape.dtype) << " " << shape.head_dim << " " << cap;
    }
  }
}

TEST(AttentionKernel, CapsAndSinksGoTogether) {
  RandomValues random;
  Shape shape = {DType::kBf16, 4, 2, 32};
  shape.soft_cap = 2;
  Attention attention(random, shape, kFourWarps, {{70, 20}});
  attention.AddSinks(random);
  EXPECT_TRUE(SameBits(attention.Run(true), attention.Expected()));
}

// The rows of the launch over the prefix, of its kernels, and of those behind it.
struct SharedCase {
  Shape heads;
  testing::AttentionTiles tiles;
  int32_t prefix_rows;
};
constexpr SharedCase kShared[] = {
    {{DType::kBf16, 4, 2, 64}, kNarrow, 16},        {{DType::kBf16, 6, 2, 128}, kNarrow, 128},
    {{DType::kBf16, 10, 2, 64}, kFourWarps, 16},    {{DType::kBf16, 4, 1, 64}, kWide, 128},
    {{DType::kBf16, 6, 2, 128}, kWide, 16},         {{DType::kBf16, 4, 1, 64}, kSpecialized, 128},
    {{DType::kBf16, 6, 2, 128}, kSpecialized, 128}, {{DType::kBf16, 6, 2, 24}, kWide, 64},
    {{DType::kBf16, 4, 2, 256}, kNarrow, 16},       {{DType::kF32, 4, 2, 16}, kWide, 16},
    {{DType::kF32, 3, 1, 72}, kNarrow, 64},
};

void CheckShared(const SharedCase& one, std::vector<Sequence> sequences, int32_t num_keys,
                 RandomValues& random, bool in_any_order, bool sinks) {
  Attention attention(random, one.heads, one.tiles, std::move(sequences), num_keys);
  if (sinks) attention.AddSinks(random);
  attention.SharePrefix(num_keys, one.prefix_rows);
  EXPECT_TRUE(SameBits(attention.Run(in_any_order), attention.Expected()))
      << NameOf(one.heads.dtype) << " " << one.heads.num_heads << " " << one.heads.head_dim << " "
      << static_cast<int>(one.tiles) << " " << num_keys;
}

// Decodes, chunks, and a token right behind the prefix.
TEST(AttentionKernel, WalksGoOnBehindSharedPrefixes) {
  RandomValues random;
  for (const SharedCase& one : kShared) {
    CheckShared(one, {{64, 1}, {70, 9}, {random.Integer(128, 250), 1}, {100, 40}}, 64, random, true,
                false);
    CheckShared(one, {{random.Integer(260, 300), 3}, {192, 1}, {193, 1}}, 192, random, false, true);
  }
}

// The prefix ends in a segment, and with one.
TEST(AttentionKernel, SharedPrefixesMayHaveSegments) {
  RandomValues random;
  for (const SharedCase& one : kShared) {
    if (one.heads.head_dim > 64) continue;
    for (const int32_t keys : {kKeysPerSegment + 128, kKeysPerSegment}) {
      CheckShared(one, {{kKeysPerSegment + 130, 2}, {kKeysPerSegment + 300, 9}}, keys, random,
                  false, keys == kKeysPerSegment);
    }
  }
}

TEST(AttentionKernel, CappedScoresShareAPrefix) {
  RandomValues random;
  SharedCase one = {{DType::kBf16, 4, 2, 256}, kFourWarps, 16};
  one.heads.soft_cap = 2;
  CheckShared(one, {{70, 9}, {140, 30}}, 64, random, false, false);
}

}  // namespace
}  // namespace skein::cuda
