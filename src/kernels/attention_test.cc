#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "testing/isas.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// One sequence's keys and values in a paged memory whose every other slot, and every block of
// somebody else, holds NaN.
struct Sequence {
  KvLayout layout;
  int32_t head = 0;
  std::vector<float> k, v;  // [num_keys, head_dim]
  std::vector<int32_t> block_table;
  AlignedBuffer memory;

  const std::byte* kv() const { return memory.data() + layout.Offset(1, 0, head); }
};

Sequence MakeSequence(RandomValues& random, DType dtype, int32_t head_dim, int32_t num_keys) {
  Sequence s;
  const int32_t num_used = (num_keys + kKvBlockTokens - 1) / kKvBlockTokens;
  s.layout = {dtype, 2, num_used + 3, 2, head_dim};
  s.head = random.Integer(0, 1);
  s.memory = AlignedBuffer(s.layout.total_bytes());
  std::vector<int32_t> blocks(s.layout.num_blocks);
  std::iota(blocks.begin(), blocks.end(), 0);
  for (size_t i = blocks.size() - 1; i > 0; --i) {
    std::swap(blocks[i], blocks[random.Integer(0, static_cast<int32_t>(i))]);
  }
  const std::vector<float> nan(head_dim, kNaN);
  for (int32_t block : blocks) {
    for (int32_t head = 0; head < 2; ++head) {
      for (int32_t slot = 0; slot < kKvBlockTokens; ++slot) {
        s.layout.Store(s.memory.data() + s.layout.Offset(1, block, head), slot, nan.data(),
                       nan.data());
      }
    }
  }
  s.block_table.assign(blocks.begin(), blocks.begin() + num_used);
  s.k = random.Floats(size_t(num_keys) * head_dim, dtype, Range::kPlain);
  s.v = random.Floats(size_t(num_keys) * head_dim, dtype, Range::kExtreme);
  for (int32_t key = 0; key < num_keys; ++key) {
    s.layout.Store(
        s.memory.data() + s.layout.Offset(1, s.block_table[key / kKvBlockTokens], s.head),
        key % kKvBlockTokens, &s.k[size_t(key) * head_dim], &s.v[size_t(key) * head_dim]);
  }
  return s;
}

class AttentionTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    auto made = MakeKernels(GetParam());
    ASSERT_TRUE(made.ok());
    kernels_ = std::move(made).value();
  }

  // Runs rows with the given numbers of keys as one tile; each must equal the reference, which
  // knows of no other row.
  ::testing::AssertionResult Check(const Sequence& s, const std::vector<int32_t>& num_keys,
                                   float q_scale) {
    const int32_t d = s.layout.head_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    std::vector<float> q_values =
        random_.Floats(num_keys.size() * d, s.layout.dtype, Range::kPlain);
    for (float& x : q_values) x *= q_scale;  // a power of two
    const TypedArray q(q_values, s.layout.dtype);
    TypedArray out(std::vector<float>(num_keys.size() * d), s.layout.dtype);
    std::vector<AttentionRow> rows;
    std::vector<float> expected(num_keys.size() * d);
    for (size_t r = 0; r < num_keys.size(); ++r) {
      rows.push_back({q.At(r * d), num_keys[r], out.At(r * d)});
      reference::Attention(
          {&q_values[r * d], s.k.data(), s.v.data(), num_keys[r], d, scale, s.layout.dtype},
          &expected[r * d]);
    }
    kernels_->Attention({.rows = rows,
                         .block_table = s.block_table,
                         .kv = s.kv(),
                         .layout = &s.layout,
                         .scale = scale});
    for (float x : expected) {
      if (std::isnan(x)) return ::testing::AssertionFailure() << "NaN expected: a useless case";
    }
    return SameBits(out.Values(), expected)
           << " (" << NameOf(s.layout.dtype) << ", head_dim " << d << ", " << num_keys.size()
           << " rows, first of " << num_keys[0] << " keys)";
  }

  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;
};

TEST_P(AttentionTest, DecodeRowsEqualTheReference) {
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (int32_t d : {8, 16, 20, 64, 80, 128, 256}) {
      for (int32_t keys : {1, 31, 32, 33, 63, 64, 65, 200}) {
        const Sequence s = MakeSequence(random_, dtype, d, keys);
        EXPECT_TRUE(Check(s, std::vector<int32_t>(random_.Integer(1, 16), keys), 1.0f));
      }
    }
  }
}

// Prefill: consecutive positions of several heads in one tile.
TEST_P(AttentionTest, CausalTilesEqualTheReference) {
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (int32_t last : {4, 16, 66, 130, 2052}) {
      const Sequence s = MakeSequence(random_, dtype, 24, last);
      std::vector<int32_t> keys;
      for (int32_t i = 0; i < 4; ++i) keys.insert(keys.end(), 4, last - 3 + i);
      EXPECT_TRUE(Check(s, keys, 1.0f));
    }
  }
}

// Rows of any lengths, over several segments, with scores flat and peaked.
TEST_P(AttentionTest, RandomTilesEqualTheReference) {
  for (int i = 0; i < 24; ++i) {
    const DType dtype = i % 2 ? DType::kF32 : DType::kBf16;
    const int32_t max_keys = random_.Integer(1, i % 8 < 4 ? 300 : 5000);
    const Sequence s = MakeSequence(random_, dtype, i % 4 ? 8 : 40, max_keys);
    std::vector<int32_t> keys(random_.Integer(1, 16));
    for (int32_t& n : keys) n = random_.Integer(1, max_keys);
    EXPECT_TRUE(Check(s, keys, i % 3 == 0 ? 32.0f : 1.0f));
  }
}

// The reference itself against softmax in double.
TEST(AttentionReferenceTest, IsSoftmaxAttention) {
  RandomValues random;
  const int32_t d = 16, n = 4500;
  const std::vector<float> q = random.Floats(d, DType::kF32, Range::kPlain);
  const std::vector<float> k = random.Floats(n * d, DType::kF32, Range::kPlain);
  const std::vector<float> v = random.Floats(n * d, DType::kF32, Range::kPlain);
  std::vector<float> out(d);
  reference::Attention({q.data(), k.data(), v.data(), n, d, 0.25f, DType::kF32}, out.data());
  double sum = 0;
  std::vector<double> acc(d);
  for (int32_t key = 0; key < n; ++key) {
    double score = 0;
    for (int32_t i = 0; i < d; ++i) score += double{q[i]} * k[key * d + i];
    const double p = std::exp(0.25 * score);
    sum += p;
    for (int32_t i = 0; i < d; ++i) acc[i] += p * v[key * d + i];
  }
  // Values of size one in sums of 4500 terms that mostly cancel: some hundred roundings.
  for (int32_t i = 0; i < d; ++i) EXPECT_NEAR(out[i], acc[i] / sum, 200 * 0x1p-24);
}

INSTANTIATE_TEST_SUITE_P(Here, AttentionTest, ::testing::ValuesIn(testing::IsasHere()),
                         testing::IsaName);

}  // namespace
}  // namespace skein
