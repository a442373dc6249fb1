#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/fp_mode.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "testing/isas.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kSizes[] = {1, 7, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 2049, 5000};

// The reductions that a draw needs over a row (docs/numerics.md, "Draws").
class DrawKernelsTest : public ::testing::TestWithParam<Isa> {
 protected:
  enum Kind { kPlain, kExtreme, kTies, kEqual, kSomeLowest, kAllLowest, kDenormal, kNumKinds };

  void SetUp() override {
    auto made = MakeKernels(GetParam());
    ASSERT_TRUE(made.ok());
    kernels_ = std::move(made).value();
  }

  std::vector<float> Row(int32_t n, int kind) {
    std::vector<float> x =
        random_.Floats(n, DType::kF32, kind == kExtreme ? Range::kExtreme : Range::kPlain);
    for (float& value : x) {
      if (kind == kTies) value = static_cast<float>(random_.Integer(-2, 2));
      if (kind == kEqual) value = -3.5f;
      if (kind == kAllLowest) value = -kInfinity;
      if (kind == kSomeLowest && random_.Integer(0, 2) == 0) value = -kInfinity;
      if (kind == kDenormal) {  // with a few zeros and ones between them
        const int32_t which = random_.Integer(0, 9);
        value = which < 7 ? value * 1e-39f : which == 7 ? -0.0f : which == 8 ? 0.0f : 1.0f;
      }
    }
    return x;
  }

  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;
};

TEST_P(DrawKernelsTest, FindLargest) {
  for (const int32_t n : kSizes) {
    for (int kind = 0; kind < kNumKinds; ++kind) {
      for (const float bad : {0.0f, kNaN, kInfinity}) {
        std::vector<float> x = Row(n, kind);
        if (bad != 0.0f) x[random_.Integer(0, n - 1)] = bad;
        const Kernels::Largest expected = reference::FindLargest(x);
        std::vector<float> group_max(NumRowGroups(n));
        const Kernels::Largest got = kernels_->FindLargest(x.data(), n, group_max.data());
        EXPECT_TRUE(SameBits(got.max, expected.max)) << n << " " << kind;
        EXPECT_EQ(got.finite, expected.finite) << n << " " << kind;
        // The index has no meaning if the row has a NaN and nothing above -inf.
        if (!std::isnan(bad) || expected.max > -kInfinity) {
          EXPECT_EQ(got.argmax, expected.argmax) << n << " " << kind;
        }
        for (int32_t g = 0; g < NumRowGroups(n); ++g) {
          const auto begin = x.begin() + g * kRowGroup;
          const auto end = x.begin() + std::min(n, (g + 1) * kRowGroup);
          const float max = reference::FindLargest({begin, end}).max;
          EXPECT_TRUE(SameBits(group_max[g], max)) << n << " " << kind << " group " << g;
        }
        const Kernels::Largest alone = kernels_->FindLargest(x.data(), n, nullptr);
        EXPECT_TRUE(SameBits(alone.max, expected.max)) << n << " " << kind;
      }
    }
  }
}

TEST_P(DrawKernelsTest, Weigh) {
  for (const int32_t n : kSizes) {
    for (int kind = 0; kind < kNumKinds; ++kind) {
      if (kind == kAllLowest) continue;
      std::vector<float> x = Row(n, kind);
      const Kernels::Largest largest = reference::FindLargest(x);
      if (!largest.finite) continue;  // a short row of -inf
      for (const float temperature : {1.0f, 0.6f, 2.0f, 1e-6f, 1e-37f}) {
        std::vector<float> weights(n), expected(n);
        std::vector<double> sums(NumRowGroups(n)), expected_sums(NumRowGroups(n));
        reference::Weigh(x, largest.max, temperature, expected.data(), expected_sums.data());
        kernels_->Weigh(x.data(), largest.max, temperature, n, weights.data(), sums.data());
        EXPECT_TRUE(SameBits(weights, expected)) << n << " " << kind << " " << temperature;
        EXPECT_EQ(sums, expected_sums) << n << " " << kind << " " << temperature;
        EXPECT_EQ(weights[largest.argmax], 1.0f);
        weights = x;  // the weights replace x
        kernels_->Weigh(weights.data(), largest.max, temperature, n, weights.data(), sums.data());
        EXPECT_TRUE(SameBits(weights, expected)) << "in place, " << n << " " << kind;
        EXPECT_EQ(sums, expected_sums) << "in place, " << n << " " << kind;
      }
    }
  }
}

TEST_P(DrawKernelsTest, FindAtLeast) {
  for (const int32_t n : kSizes) {
    for (int kind = 0; kind < kNumKinds; ++kind) {
      const std::vector<float> x = Row(n, kind);
      std::vector<float> group_max(NumRowGroups(n));
      const float max = kernels_->FindLargest(x.data(), n, group_max.data()).max;
      for (const float floor : {-kInfinity, std::numeric_limits<float>::lowest(), -0.0f, 1e-40f,
                                1.5f, x[n / 2], max, kInfinity}) {
        std::vector<int32_t> expected;
        {
          const ScopedFpMode fp_mode;  // a denormal counts as zero
          for (int32_t i = 0; i < n; ++i) {
            if (x[i] >= floor) expected.push_back(i);
          }
        }
        for (const bool grouped : {false, true}) {
          std::vector<int32_t> ids(n + 1, -1);
          const int32_t count = kernels_->FindAtLeast(
              x.data(), n, floor, grouped ? group_max.data() : nullptr, ids.data());
          EXPECT_EQ(ids.back(), -1);
          ids.resize(count);
          EXPECT_EQ(ids, expected) << n << " " << kind << " " << floor;
        }
      }
    }
  }
}

TEST_P(DrawKernelsTest, RankOf) {
  for (const int32_t n : kSizes) {
    for (int kind = 0; kind < kNumKinds; ++kind) {
      const std::vector<float> x = Row(n, kind);
      for (const int32_t index : {0, n - 1, n / 2, random_.Integer(0, n - 1)}) {
        int32_t expected = 0;
        {
          const ScopedFpMode fp_mode;
          for (int32_t i = 0; i < n; ++i) {
            expected += x[i] > x[index] || (x[i] == x[index] && i < index);
          }
        }
        EXPECT_EQ(kernels_->RankOf(x.data(), n, index), expected) << n << " " << kind;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Here, DrawKernelsTest, ::testing::ValuesIn(IsasHere()), testing::IsaName);

}  // namespace
}  // namespace skein
