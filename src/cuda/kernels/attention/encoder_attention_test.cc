// Attention to keys on both sides of a token's own, and to keys of which some are hidden.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/cuda_attention.h"

namespace skein::cuda {
namespace {

using testing::AttentionHeads;
using testing::AttentionTiles;
using testing::AttentionTokens;
using testing::PagedAttention;
using testing::RandomValues;
using testing::SameBits;
using enum testing::AttentionTiles;

struct TiledHeads {
  AttentionHeads heads;
  AttentionTiles tiles;

  TiledHeads WithWindow(int32_t before, int32_t after) const {
    TiledHeads with = *this;
    with.heads.keys_before = before;
    with.heads.keys_after = after;
    return with;
  }
  std::string Name() const {
    return std::string(NameOf(heads.dtype)) + ", " + std::to_string(heads.num_heads) +
           " heads of " + std::to_string(heads.head_dim) + ", tiles " +
           std::to_string(static_cast<int>(tiles)) + ", window " +
           std::to_string(heads.keys_before) + " " + std::to_string(heads.keys_after);
  }
};

// Each kernel: heads of a common width, of others, and heads of several parts.
constexpr TiledHeads kKernels[] = {
    {{DType::kBf16, 2, 2, 64}, kNarrow},      {{DType::kBf16, 2, 1, 128}, kNarrow},
    {{DType::kBf16, 2, 1, 64}, kFourWarps},   {{DType::kBf16, 2, 2, 128}, kFourWarps},
    {{DType::kBf16, 2, 2, 64}, kWide},        {{DType::kBf16, 2, 1, 128}, kWide},
    {{DType::kBf16, 2, 1, 64}, kSpecialized}, {{DType::kBf16, 2, 2, 128}, kSpecialized},
    {{DType::kBf16, 4, 2, 24}, kNarrow},      {{DType::kBf16, 3, 1, 24}, kWide},
    {{DType::kBf16, 2, 1, 192}, kWide},       {{DType::kBf16, 1, 1, 256}, kNarrow},
    {{DType::kF32, 2, 2, 16}, kNarrow},       {{DType::kF32, 2, 1, 64}, kWide},
};

void Check(PagedAttention& attention, bool in_any_order, const TiledHeads& of) {
  EXPECT_TRUE(SameBits(attention.Run(in_any_order), attention.Expected())) << of.Name();
}

// A prompt of several steps, one that does not see its last tokens, one whose keys end with a
// block, tokens in the middle of a sequence, and a single token.
std::vector<AttentionTokens> Prompts(RandomValues& random) {
  return {{0, random.Integer(66, 90)},
          {0, random.Integer(10, 80), random.Integer(1, 9)},
          {0, 12, 32},
          {random.Integer(1, 40), random.Integer(2, 9), random.Integer(130, 200)},
          {0, 1}};
}

TEST(EncoderAttention, TokensSeeTheKeysBehindThem) {
  RandomValues random;
  for (const TiledHeads& kernel : kKernels) {
    const TiledHeads of = kernel.WithWindow(-1, kAllKeys);
    PagedAttention attention(random, of.heads, of.tiles, Prompts(random));
    Check(attention, true, of);
  }
}

// Windows of one side alone, within a step, over several steps, and longer than the sequence.
TEST(EncoderAttention, WindowsHaveTwoSides) {
  constexpr struct {
    int32_t before, after;
  } kWindows[] = {{0, 8},   {8, 0},      {3, 70},        {64, 64},
                  {100, 5}, {1000, 900}, {33, kAllKeys}, {-1, 9}};
  RandomValues random;
  int32_t next = random.Integer(0, 1);
  for (const auto& window : kWindows) {
    for (int i = 0; i < 2; ++i) {
      const TiledHeads of =
          kKernels[next++ % std::size(kKernels)].WithWindow(window.before, window.after);
      PagedAttention attention(random, of.heads, of.tiles, Prompts(random));
      Check(attention, i == 0, of);
    }
  }
}

// Some tokens lie in another segment than the first or the last of their keys.
TEST(EncoderAttention, SegmentsOnBothSidesAreMerged) {
  RandomValues random;
  for (const TiledHeads& kernel : kKernels) {
    if (kernel.heads.head_dim > 128) continue;
    for (const TiledHeads& of : {kernel.WithWindow(-1, kAllKeys), kernel.WithWindow(40, 60)}) {
      PagedAttention attention(random, of.heads, of.tiles,
                               {{kKeysPerSegment - 10, 34, kKeysPerSegment + 40},
                                {kKeysPerSegment - 9, 2, kKeysPerSegment + 1}});
      Check(attention, false, of);
    }
  }
}

// The kernels that know hidden keys.
constexpr TiledHeads kKernelsWithBits[] = {
    {{DType::kBf16, 2, 1, 64}, kNarrow},  {{DType::kBf16, 3, 3, 64}, kFourWarps},
    {{DType::kBf16, 2, 2, 128}, kNarrow}, {{DType::kBf16, 2, 1, 128}, kFourWarps},
    {{DType::kBf16, 4, 2, 24}, kNarrow},  {{DType::kBf16, 3, 1, 24}, kFourWarps},
    {{DType::kBf16, 1, 1, 256}, kNarrow}, {{DType::kBf16, 2, 1, 192}, kFourWarps},
    {{DType::kF32, 2, 1, 16}, kNarrow},   {{DType::kF32, 2, 2, 64}, kFourWarps},
};

// Single keys, KV blocks, and steps, with windows, without, and up to a token's own key.
TEST(EncoderAttention, HiddenKeysTakeNoPart) {
  RandomValues random;
  for (const TiledHeads& kernel : kKernelsWithBits) {
    for (const TiledHeads& of :
         {kernel.WithWindow(-1, kAllKeys), kernel.WithWindow(-1, 0), kernel.WithWindow(100, 20)}) {
      PagedAttention attention(random, of.heads, of.tiles,
                               {{0, random.Integer(68, 90)},
                                {random.Integer(100, 250), 20, random.Integer(280, 330)},
                                {0, 9, 5}});
      attention.HideKeys(random, 300);
      Check(attention, of.heads.keys_before > 0, of);
    }
  }
}

// Terms by the distance of a token from a key, over several segments, too.
TEST(EncoderAttention, TermsFollowFromDistances) {
  RandomValues random;
  for (const TiledHeads& kernel : kKernelsWithBits) {
    if (kernel.heads.num_heads != kernel.heads.num_kv_heads) continue;
    const TiledHeads of = kernel.WithWindow(-1, kAllKeys);
    PagedAttention attention(
        random, of.heads, of.tiles,
        {{0, random.Integer(68, 90)}, {0, 5, 3}, {0, random.Integer(130, 300)}});
    attention.AddTerms(random, 48);
    Check(attention, false, of);
  }
  const TiledHeads of = TiledHeads{{DType::kBf16, 1, 1, 16}, kNarrow}.WithWindow(-1, kAllKeys);
  for (const int32_t num_tokens : {20, kKeysPerSegment + 20}) {
    PagedAttention attention(random, of.heads, of.tiles, {{0, num_tokens}});
    attention.AddTerms(random, 16);
    Check(attention, num_tokens == 20, of);
  }
}

// Terms of heads and distances, with windows and hidden keys, too.
TEST(EncoderAttention, TermsFollowFromHeadsAndDistances) {
  RandomValues random;
  for (const TiledHeads& kernel : kKernelsWithBits) {
    if (kernel.heads.num_heads != kernel.heads.num_kv_heads) continue;
    for (const TiledHeads& of : {kernel.WithWindow(-1, kAllKeys), kernel.WithWindow(40, 30)}) {
      PagedAttention attention(random, of.heads, of.tiles,
                               {{0, random.Integer(68, 90)}, {0, 5, 3}, {70, 9, 100}});
      attention.AddDistanceTerms(random);
      if (of.heads.keys_before > 0) attention.HideKeys(random, 100);
      Check(attention, false, of);
    }
  }
  const TiledHeads of = TiledHeads{{DType::kBf16, 1, 1, 16}, kNarrow}.WithWindow(-1, kAllKeys);
  PagedAttention attention(random, of.heads, of.tiles, {{0, kKeysPerSegment + 20}});
  attention.AddDistanceTerms(random);
  Check(attention, false, of);
}

// Tokens that see no key of whole segments, also of the first ones.
TEST(EncoderAttention, SegmentsMayBeHidden) {
  RandomValues random;
  for (const TiledHeads& kernel : kKernelsWithBits) {
    if (kernel.heads.head_dim > 64) continue;
    const TiledHeads of = kernel.WithWindow(-1, random.Integer(0, 1) * kAllKeys);
    PagedAttention attention(
        random, of.heads, of.tiles,
        {{kKeysPerSegment - 4, 9}, {2 * kKeysPerSegment + 10, 14}, {3, 2, kKeysPerSegment + 40}});
    attention.HideKeys(random, 4 * kKeysPerSegment, 2 * kKeysPerSegment + 3);
    Check(attention, false, of);
  }
}

// Bits that hide nothing choose another kernel, with the same bits.
TEST(EncoderAttention, BitsOfAllKeysChangeNothing) {
  RandomValues random;
  for (const TiledHeads& kernel : kKernelsWithBits) {
    const TiledHeads of = kernel.WithWindow(-1, kAllKeys);
    PagedAttention attention(random, of.heads, of.tiles, {{0, 70}, {100, 9, 150}});
    const std::vector<float> without = attention.Run(false);
    attention.ShowAllKeys();
    EXPECT_TRUE(SameBits(attention.Run(false), without)) << of.Name();
  }
}

}  // namespace
}  // namespace skein::cuda
