#include <gtest/gtest.h>

#include <vector>

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

KvPointers PointersTo(std::vector<std::byte>& memory, const KvLayout& layout,
                      int32_t num_pool_blocks) {
  auto* pool = reinterpret_cast<uint8_t*>(memory.data());
  const auto block_bytes = static_cast<int64_t>(layout.block_bytes());
  return {.pool = pool,
          .own = pool + num_pool_blocks * block_bytes,
          .num_pool_blocks = num_pool_blocks,
          .block_bytes = block_bytes,
          .head_bytes = static_cast<int64_t>(layout.head_bytes())};
}

struct Case {
  DType dtype;
  int32_t num_heads, num_kv_heads, head_dim, rotary_dim;
  bool norms;
  int32_t num_tokens = 23;
  int32_t spare = 6;  // elements behind the heads of a row of q
  KernelId kernel = dtype == DType::kF32 ? KernelId::kStoreHeadsF32 : KernelId::kStoreHeadsBf16;
};
constexpr KernelId k64 = KernelId::kStoreHeadsBf16Head64, k128 = KernelId::kStoreHeadsBf16Head128;
constexpr Case kCases[] = {
    {DType::kBf16, 4, 2, 32, 32, true},
    {DType::kBf16, 3, 1, 24, 12, false},
    {DType::kBf16, 2, 1, 8, 8, true},
    {DType::kBf16, 2, 2, 16, 0, false},
    {DType::kF32, 5, 1, 20, 20, true},
    {DType::kF32, 4, 2, 64, 32, false},
    {DType::kBf16, 2, 1, 136, 136, true},
    {DType::kF32, 1, 1, 256, 100, true},
    // Many tokens.
    {DType::kBf16, 2, 1, 128, 128, true, 90, 8, k128},
    {DType::kBf16, 3, 2, 64, 64, false, 97, 4, k64},
    {DType::kBf16, 1, 1, 64, 0, true, 75, 0, k64},
    {DType::kBf16, 1, 1, 128, 0, false, 83, 12, k128},
    // Rows of q that are not aligned, or heads that do not rotate as a whole.
    {DType::kBf16, 1, 1, 128, 128, true, 70, 6},
    {DType::kBf16, 1, 1, 64, 32, true, 70, 8},
};

// Positions in the first blocks of a sequence. Some are left out, so that some keys are alone in
// their word of V.
std::vector<int32_t> Positions(RandomValues& random, int32_t num_tokens, int32_t num_blocks) {
  const int32_t end = num_blocks * kKvBlockTokens;
  std::vector<int32_t> positions = {random.Integer(0, 31)};
  while (static_cast<int32_t>(positions.size()) < num_tokens) {
    const int32_t left = num_tokens - static_cast<int32_t>(positions.size());
    const int32_t spare = end - 1 - positions.back() - left;
    const bool skips = spare >= 2 && random.Integer(0, 5) == 0;
    positions.push_back(positions.back() + 1 + (skips ? random.Integer(1, 2) : 0));
  }
  return positions;
}

// Random positions. Tokens may share one, as where options are read side by side.
std::vector<int32_t> RopePositions(RandomValues& random, int32_t num_tokens, int32_t end) {
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < num_tokens; ++i) positions.push_back(random.Integer(0, end - 1));
  return positions;
}

// The heads of one token by the definitions: normed, rotated and rounded.
std::vector<float> Heads(const Case& c, std::vector<float> x, const std::vector<float>& q_norm,
                         const std::vector<float>& k_norm, const float* cos, const float* sin) {
  for (int32_t head = 0; head < c.num_heads + c.num_kv_heads; ++head) {
    const std::span<float> values(&x[head * c.head_dim], c.head_dim);
    const std::vector<float>& norm = head < c.num_heads ? q_norm : k_norm;
    if (c.norms) reference::RmsNorm(values, norm.data(), 1e-5f, values.data());
    if (c.rotary_dim > 0) reference::Rope(values.first(c.rotary_dim), cos, sin);
  }
  return TypedArray(x, c.dtype).Values();
}

TEST(StoreHeads, HasTheProcessorsBitsInTheProcessorsOrder) {
  RandomValues random;
  for (const Case& c : kCases) {
    const int32_t num_tokens = c.num_tokens, num_blocks = 6;
    const int32_t heads = c.num_heads + 2 * c.num_kv_heads;
    const KvLayout layout = {c.dtype, 1, num_blocks, c.num_kv_heads, c.head_dim};
    const int32_t width = heads * c.head_dim;
    const std::vector<float> qkv = random.Floats(num_tokens * width, DType::kF32, Range::kPlain);
    const std::vector<float> q_norm = random.Floats(c.head_dim, DType::kF32, Range::kPlain);
    const std::vector<float> k_norm = random.Floats(c.head_dim, DType::kF32, Range::kPlain);
    const int32_t half = c.rotary_dim / 2, positions = 200;
    const std::vector<float> cos = random.Floats(positions * half + 1, DType::kF32, Range::kPlain);
    const std::vector<float> sin = random.Floats(positions * half + 1, DType::kF32, Range::kPlain);
    const int32_t last_block = num_blocks - 1;  // belongs to the pass
    const std::vector<int32_t> at = Positions(random, num_tokens, num_blocks);
    const std::vector<int32_t> angle = RopePositions(random, num_tokens, positions);
    const std::vector<int32_t> table = {2, last_block, 0, 4, 1, 3};
    std::vector<int32_t> blocks;
    for (const int32_t position : at) blocks.push_back(table[position / kKvBlockTokens]);
    std::vector<std::byte> memory(layout.total_bytes(), std::byte{0x7e});
    std::vector<std::byte> expected_memory = memory;
    const int32_t ldq = c.num_heads * c.head_dim + c.spare;
    TypedArray q(std::vector<float>(num_tokens * ldq, 2.0f), c.dtype);
    std::vector<float> expected_q(num_tokens * ldq, 2.0f);
    const Launch launch = StoreHeadsLaunch(c.dtype, {.qkv = qkv.data(),
                                                     .q_norm = c.norms ? q_norm.data() : nullptr,
                                                     .k_norm = c.norms ? k_norm.data() : nullptr,
                                                     .eps = 1e-5f,
                                                     .cos = c.rotary_dim > 0 ? cos.data() : nullptr,
                                                     .sin = c.rotary_dim > 0 ? sin.data() : nullptr,
                                                     .positions = at.data(),
                                                     .rope_positions = angle.data(),
                                                     .blocks = blocks.data(),
                                                     .num_tokens = num_tokens,
                                                     .num_heads = c.num_heads,
                                                     .num_kv_heads = c.num_kv_heads,
                                                     .head_dim = c.head_dim,
                                                     .rotary_dim = c.rotary_dim,
                                                     .q = q.At(0),
                                                     .ldq = ldq,
                                                     .kv = PointersTo(memory, layout, last_block)});
    EXPECT_EQ(launch.kernel, c.kernel);
    ExpectSameInAnyOrder(launch, std::span(memory));
    for (int32_t i = 0; i < num_tokens; ++i) {
      const auto begin = qkv.begin() + i * width;
      const std::vector<float> values = Heads(c, {begin, begin + width}, q_norm, k_norm,
                                              &cos[angle[i] * half], &sin[angle[i] * half]);
      std::copy_n(values.begin(), c.num_heads * c.head_dim, &expected_q[i * ldq]);
      const TypedArray typed(values, c.dtype);
      for (int32_t head = 0; head < c.num_kv_heads; ++head) {
        std::byte* base = expected_memory.data() + layout.Offset(0, blocks[i], head);
        const int32_t slot = at[i] % kKvBlockTokens, k = c.num_heads + head;
        // The padding of the head must be zeros, since products read it.
        std::vector<float> key(layout.head_dim_padded(), 0.0f);
        std::copy_n(&values[k * c.head_dim], c.head_dim, key.begin());
        KvLayout padded = layout;
        padded.head_dim = layout.head_dim_padded();
        padded.StoreK(base, slot, TypedArray(key, c.dtype).data());
        layout.StoreV(base, slot, typed.At((k + c.num_kv_heads) * c.head_dim));
      }
    }
    EXPECT_TRUE(SameBits(q.Values(), expected_q)) << NameOf(c.dtype) << " " << c.head_dim;
    EXPECT_TRUE(memory == expected_memory) << NameOf(c.dtype) << " " << c.head_dim;
  }
}

TEST(CopySlots, CopiesWhatTheProcessorDoes) {
  RandomValues random;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const KvLayout layout = {dtype, 3, 5, 2, 24};
    std::vector<std::byte> memory(layout.total_bytes());
    for (std::byte& b : memory) b = static_cast<std::byte>(random.Integer(0, 255));
    std::vector<std::byte> expected = memory;
    const std::vector<SlotCopy> copies = {{0, 3, random.Integer(1, 31)}, {1, 4, kKvBlockTokens}};
    for (const SlotCopy& copy : copies) {
      for (int32_t layer = 0; layer < 3; ++layer) {
        for (int32_t head = 0; head < 2; ++head) {
          layout.CopySlots(expected.data() + layout.Offset(layer, copy.from, head),
                           expected.data() + layout.Offset(layer, copy.to, head), copy.slots);
        }
      }
    }
    ExpectSameInAnyOrder(
        CopySlotsLaunch(dtype, {.copies = copies.data(),
                                .num_copies = 2,
                                .num_kv_heads = 2,
                                .head_dim_padded = layout.head_dim_padded(),
                                .num_layers = 3,
                                .layer_bytes = static_cast<int64_t>(layout.layer_bytes()),
                                .kv = PointersTo(memory, layout, layout.num_blocks)}),
        std::span(memory));
    EXPECT_TRUE(memory == expected) << NameOf(dtype);
  }
}

}  // namespace
}  // namespace skein::cuda
