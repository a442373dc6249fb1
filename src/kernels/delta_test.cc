// Compares the operations of linear layers with their definitions, bit for bit.

#include <gtest/gtest.h>

#include <vector>

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

class DeltaTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    auto made = MakeKernels(GetParam());
    ASSERT_TRUE(made.ok());
    kernels_ = std::move(made).value();
  }
  std::vector<float> Values(int32_t n) { return random_.Floats(n, DType::kF32, Range::kPlain); }

  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;
};

TEST_P(DeltaTest, SigmoidMul) {
  for (const int32_t n : {1, 15, 16, 17, 32, 100, 256}) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      const std::vector<float> gate = random_.Floats(n, DType::kF32, Range::kExtreme);
      TypedArray x(random_.Floats(n, dtype, Range::kPlain), dtype);
      std::vector<float> expected = x.Values();
      reference::SigmoidMul(gate, expected.data());
      if (dtype == DType::kBf16) {
        for (float& e : expected) e = ToFloat(ToBf16(e));
      }
      kernels_->SigmoidMul(gate.data(), n, x.At(0), dtype);
      EXPECT_TRUE(SameBits(x.Values(), expected)) << n;
    }
  }
}

TEST_P(DeltaTest, Conv) {
  for (const int32_t n : {1, 16, 24, 128}) {
    for (const int32_t tokens : {1, 2, 3, 4, 11}) {
      const int32_t ldx = n + 5, ldw = n + 3;
      const std::vector<float> weight = Values(kConvWidth * ldw);
      std::vector<float> x = Values(tokens * ldx), state = Values(3 * n);
      std::vector<float> own_x = x, own_state = state;
      ConvCall call = {x.data(), ldx, tokens, n, weight.data(), ldw, state.data()};
      reference::Conv(call);
      call.x = own_x.data();
      call.state = own_state.data();
      kernels_->Conv(call);
      EXPECT_TRUE(SameBits(own_x, x)) << n << " columns, " << tokens << " tokens";
      EXPECT_TRUE(SameBits(own_state, state)) << n << " columns, " << tokens << " tokens";
    }
  }
}

// All tokens in one call must give the same result as one call for each token.
TEST_P(DeltaTest, Delta) {
  for (const int32_t k_dim : {4, 20, 128, 256}) {
    constexpr int32_t kTokens = 9;
    const int32_t ld = 2 * k_dim + kDeltaCols + 2;
    std::vector<float> rows = Values(kTokens * ld), state = Values(k_dim * kDeltaCols);
    std::vector<float> whole = rows, whole_state = state, single = rows, single_state = state;
    const auto call_on = [&](std::vector<float>& x, std::vector<float>& s, int32_t first,
                             int32_t count) {
      float* const row = x.data() + first * ld;
      return DeltaCall{.state = s.data(),
                       .q = row,
                       .k = row + k_dim,
                       .v = row + 2 * k_dim,
                       .decay = row + ld - 2,
                       .beta = row + ld - 1,
                       .ld = ld,
                       .num_tokens = count,
                       .k_dim = k_dim};
    };
    reference::Delta(call_on(rows, state, 0, kTokens));
    kernels_->Delta(call_on(whole, whole_state, 0, kTokens));
    for (int32_t t = 0; t < kTokens; ++t) kernels_->Delta(call_on(single, single_state, t, 1));
    EXPECT_TRUE(SameBits(whole, rows)) << k_dim;
    EXPECT_TRUE(SameBits(whole_state, state)) << k_dim;
    EXPECT_TRUE(SameBits(single, rows)) << k_dim;
    EXPECT_TRUE(SameBits(single_state, state)) << k_dim;
  }
}

// Tests the definition itself, on a state that can be computed by hand.
TEST(DeltaDefinitionTest, WritesAndReads) {
  std::vector<float> state(4 * kDeltaCols, 1.0f), v(kDeltaCols, 8.0f);
  const float q[4] = {0, 1, 0, 0}, k[4] = {0, 1, 0, 0}, decay = 0.5f, beta = 0.25f;
  reference::Delta({state.data(), q, k, v.data(), &decay, &beta, kDeltaCols, 1, 4});
  // The state at k was 1 and has decayed to 0.5. A quarter of its difference to 8 is added.
  EXPECT_FLOAT_EQ(v[3], 0.5f + 0.25f * (8 - 0.5f));
  EXPECT_FLOAT_EQ(state[kDeltaCols], v[3]);
  EXPECT_FLOAT_EQ(state[0], 0.5f);
}

INSTANTIATE_TEST_SUITE_P(Here, DeltaTest, ::testing::ValuesIn(IsasHere()), testing::IsaName);

}  // namespace
}  // namespace skein
