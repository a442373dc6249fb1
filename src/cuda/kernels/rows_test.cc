#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/fp_mode.h"
#include "cuda/kernels/launches.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"
#include "kernels/reference.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::RunOnce;
using testing::SameBits;
using testing::TypedArray;

constexpr DType kTypes[] = {DType::kF32, DType::kBf16};

TEST(RowKernels, RmsNormHasTheProcessorsBits) {
  RandomValues random;
  for (const DType dtype : kTypes) {
    // The last two need more than one part of a block's shared memory.
    for (const int32_t width : {1, 15, 16, 17, 40, 64, 333, 1024, 4100, 8201}) {
      for (const Range range : {Range::kPlain, Range::kExtreme}) {
        const int32_t num_rows = random.Integer(1, width > 1024 ? 3 : 20);
        const std::vector<float> x = random.Floats(num_rows * width, DType::kF32, range);
        const std::vector<float> weight = random.Floats(width, DType::kF32, Range::kPlain);
        std::vector<int32_t> rows;
        for (int32_t i = 0; i < num_rows; ++i) rows.push_back(random.Integer(0, num_rows - 1));
        const int64_t ldo = PaddedWidth(width, dtype);
        TypedArray out(std::vector<float>(num_rows * ldo, 7.0f), dtype);
        ExpectSameInAnyOrder(
            RmsNormLaunch(dtype, {.x = x.data(),
                                  .ldx = width,
                                  .rows = rows.data(),
                                  .weight = weight.data(),
                                  .num_rows = num_rows,
                                  .width = width,
                                  .eps = 1e-6f,
                                  .out = out.At(0),
                                  .ldo = ldo}),
            std::span(static_cast<std::byte*>(out.At(0)), num_rows * ldo * SizeOf(dtype)));
        std::vector<float> expected(num_rows * ldo, 7.0f);
        for (int32_t i = 0; i < num_rows; ++i) {
          reference::RmsNorm({&x[rows[i] * width], size_t(width)}, weight.data(), 1e-6f,
                             &expected[i * ldo]);
        }
        EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, dtype).Values())) << width;
      }
    }
  }
}

TEST(RowKernels, WithoutANormRowsAreRounded) {
  RandomValues random;
  for (const DType dtype : kTypes) {
    const int32_t num_rows = 5, width = 37, ldx = 40;
    const std::vector<float> x = random.Floats(num_rows * ldx, DType::kF32, Range::kExtreme);
    TypedArray out(std::vector<float>(num_rows * ldx, 7.0f), dtype);
    testing::RunOnce(RmsNormLaunch(dtype, {.x = x.data(),
                                           .ldx = ldx,
                                           .num_rows = num_rows,
                                           .width = width,
                                           .out = out.At(0),
                                           .ldo = ldx}));
    std::vector<float> expected(num_rows * ldx, 7.0f);
    for (int32_t i = 0; i < num_rows; ++i) std::copy_n(&x[i * ldx], width, &expected[i * ldx]);
    EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, dtype).Values()));
  }
}

// The norms of q and k over all heads of a token lie side by side in one row.
TEST(RowKernels, RmsNormWorksInPlace) {
  RandomValues random;
  const int32_t num_rows = 9, width = 48, ldx = 100, first = 20;
  std::vector<float> x = random.Floats(num_rows * ldx, DType::kF32, Range::kPlain);
  const std::vector<float> weight = random.Floats(width, DType::kF32, Range::kPlain);
  std::vector<float> expected = x;
  for (int32_t i = 0; i < num_rows; ++i) {
    float* row = &expected[i * ldx + first];
    reference::RmsNorm({row, size_t(width)}, weight.data(), 1e-6f, row);
  }
  ExpectSameInAnyOrder(RmsNormLaunch(DType::kF32, {.x = &x[first],
                                                   .ldx = ldx,
                                                   .weight = weight.data(),
                                                   .num_rows = num_rows,
                                                   .width = width,
                                                   .eps = 1e-6f,
                                                   .out = &x[first],
                                                   .ldo = ldx}),
                       std::span(x));
  EXPECT_TRUE(SameBits(x, expected));
}

// Two matrices of different widths; the second lies between other words.
TEST(RowKernels, RowsAreGathered) {
  RandomValues random;
  for (const int32_t width : {1, 15, 16, 64, 514, 2048, 4100}) {
    const int32_t num_rows = random.Integer(1, 6), other = width + random.Integer(0, 3);
    const int32_t num_from = num_rows + random.Integer(1, 9);
    const std::vector<float> first = random.Floats(num_from * width, DType::kF32, Range::kExtreme);
    const std::vector<float> second = random.Floats(num_from * other, DType::kF32, Range::kExtreme);
    std::vector<int32_t> rows;
    for (int32_t i = 0; i < num_rows; ++i) rows.push_back(random.Integer(0, num_from - 1));
    std::vector<float> out((num_rows + 1) * (width + other), 7.0f), expected = out;
    float* const second_out = &out[(num_rows + 1) * width];
    ExpectSameInAnyOrder(GatherLaunch({.rows = rows.data(),
                                       .num_rows = num_rows,
                                       .first = {first.data(), out.data(), width},
                                       .second = {second.data(), second_out, other}}),
                         std::span(out));
    for (int32_t i = 0; i < num_rows; ++i) {
      std::copy_n(&first[rows[i] * width], width, &expected[i * width]);
      std::copy_n(&second[rows[i] * other], other, &expected[(num_rows + 1) * width + i * other]);
    }
    EXPECT_TRUE(SameBits(out, expected)) << width << " " << other;
  }
}

// Rows of odd and even words, for one peer and for most of them.
TEST(RowKernels, ColumnsAreShared) {
  RandomValues random;
  for (const int32_t words : {1, 8, 15, 514, 2100}) {
    for (const int32_t num_peers : {1, kMaxRanks - 1}) {
      const int32_t num_rows = random.Integer(1, 4), before = random.Integer(0, 8);
      const int32_t stride = before + words + random.Integer(0, 5);
      const std::vector<float> mine =
          random.Floats(num_rows * stride, DType::kF32, Range::kExtreme);
      std::vector<float> theirs(num_peers * num_rows * stride, 7.0f), expected = theirs;
      ShareColumnsArgs args = {.from = reinterpret_cast<const uint32_t*>(&mine[before]),
                               .num_peers = num_peers,
                               .num_rows = num_rows,
                               .stride = stride,
                               .words = words};
      for (int32_t peer = 0; peer < num_peers; ++peer) {
        const int32_t first = peer * num_rows * stride + before;
        args.to[peer] = reinterpret_cast<uint32_t*>(&theirs[first]);
        for (int32_t row = 0; row < num_rows; ++row) {
          std::copy_n(&mine[row * stride + before], words, &expected[first + row * stride]);
        }
      }
      ExpectSameInAnyOrder(ShareColumnsLaunch(args), std::span(theirs));
      EXPECT_TRUE(SameBits(theirs, expected)) << words << " " << num_peers;
    }
  }
}

TEST(RowKernels, BranchesAreNormedScaledAndAdded) {
  RandomValues random;
  for (const bool norms : {false, true}) {
    for (const float scale : {1.0f, 0.22f}) {
      const int32_t num_rows = 11, width = norms ? random.Integer(1, 90) : 1028;
      const std::vector<float> branch =
          random.Floats(num_rows * width, DType::kF32, Range::kExtreme);
      const std::vector<float> weight = random.Floats(width, DType::kF32, Range::kPlain);
      std::vector<float> x = random.Floats(num_rows * width, DType::kF32, Range::kPlain);
      std::vector<float> expected = x;
      for (int32_t i = 0; i < num_rows; ++i) {
        std::vector<float> row(branch.begin() + i * width, branch.begin() + (i + 1) * width);
        if (norms) reference::RmsNorm(row, weight.data(), 1e-5f, row.data());
        const ScopedFpMode fp_mode;
        for (int32_t d = 0; d < width; ++d) {
          float& to = expected[i * width + d];
          to = to + scale * row[d];
        }
      }
      ExpectSameInAnyOrder(BranchLaunch({.branch = branch.data(),
                                         .weight = norms ? weight.data() : nullptr,
                                         .eps = 1e-5f,
                                         .scale = scale,
                                         .num_rows = num_rows,
                                         .width = width,
                                         .x = x.data()}),
                           std::span(x));
      EXPECT_TRUE(SameBits(x, expected)) << norms << " " << scale;
    }
  }
}

TEST(RowKernels, QuantizeHasTheProcessorsBits) {
  RandomValues random;
  for (const DType dtype : kTypes) {
    for (const int32_t width : {1, 16, 31, 64, 100, 1028}) {
      const int32_t num_rows = 11;
      std::vector<float> x = random.Floats(num_rows * width, dtype, Range::kExtreme);
      std::fill_n(x.begin(), width, 0.0f);                         // a row of zeros
      x[width] = std::numeric_limits<float>::quiet_NaN();          // a row with a NaN
      x[3 * width - 1] = -std::numeric_limits<float>::infinity();  // and with an infinity
      for (int32_t i = 3 * width; i < 4 * width; ++i) x[i] *= 0x1p-126f;
      for (float& e : x) e = dtype == DType::kBf16 ? ToFloat(ToBf16(e)) : e;
      const int64_t ldo = PaddedWidth(width, DType::kInt8);
      TypedArray in(x, dtype);
      std::vector<int8_t> out(num_rows * ldo, 5), expected(num_rows * ldo, 5);
      std::vector<float> scales(num_rows), expected_scales;
      ExpectSameInAnyOrder(QuantizeLaunch(dtype, {.x = in.data(),
                                                  .ldx = width,
                                                  .num_rows = num_rows,
                                                  .width = width,
                                                  .out = out.data(),
                                                  .ldo = ldo,
                                                  .scales = scales.data()}),
                           std::span(out));
      for (int32_t i = 0; i < num_rows; ++i) {
        expected_scales.push_back(
            reference::Quantize({&x[i * width], size_t(width)}, &expected[i * ldo]));
      }
      EXPECT_EQ(out, expected) << width;
      EXPECT_TRUE(SameBits(scales, expected_scales)) << width;
    }
  }
}

TEST(RowKernels, GatesAreRounded) {
  RandomValues random;
  for (const DType dtype : kTypes) {
    for (const int32_t width : {1, 48, 1030}) {
      const int32_t num_rows = 3, ldo = width + 2;
      const std::vector<float> x = random.Floats(num_rows * width, DType::kF32, Range::kExtreme);
      TypedArray out(std::vector<float>(num_rows * ldo, 7.0f), dtype);
      ExpectSameInAnyOrder(
          ActivateLaunch(dtype, {.gate = Gate::kRelu,
                                 .x = x.data(),
                                 .num_rows = num_rows,
                                 .width = width,
                                 .out = out.At(0),
                                 .ldo = ldo}),
          std::span(static_cast<std::byte*>(out.At(0)), num_rows * ldo * SizeOf(dtype)));
      std::vector<float> expected(num_rows * ldo, 7.0f);
      const ScopedFpMode fp_mode;
      for (int32_t i = 0; i < num_rows * width; ++i) {
        expected[i / width * ldo + i % width] = x[i] > 0.0f ? x[i] : 0.0f;
      }
      EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, dtype).Values())) << width;
    }
  }
}

// The sums of a gate and of what it gates, which lie apart.
TEST(RowKernels, GatedSumsAreRounded) {
  RandomValues random;
  constexpr std::pair<Gate, Activation> kGates[] = {
      {Gate::kSilu, Activation::kSilu},
      {Gate::kGelu, Activation::kGelu},
      {Gate::kGeluTanh, Activation::kGeluTanh},
      {Gate::kRelu, Activation::kRelu},
      {Gate::kClampedSwiglu, Activation::kClampedSwiglu}};
  for (const DType dtype : kTypes) {
    for (const int32_t width : {1, 6, 30, 128, 1030, 4096}) {
      for (const auto& [gate, activation] : kGates) {
        const int32_t num_rows = random.Integer(1, 3), up = width + random.Integer(0, 5);
        const int32_t ldx = up + width + random.Integer(0, 3), ldo = width + random.Integer(0, 4);
        const std::vector<float> x = random.Floats(num_rows * ldx, DType::kF32, Range::kExtreme);
        std::vector<float> expected((num_rows + 1) * ldo, 7.0f);
        TypedArray out(expected, dtype);
        ExpectSameInAnyOrder(
            GateSumsLaunch(dtype, {.gate = gate,
                                   .x = x.data(),
                                   .ldx = ldx,
                                   .up = up,
                                   .num_rows = num_rows,
                                   .width = width,
                                   .out = out.At(0),
                                   .ldo = ldo}),
            std::span(static_cast<std::byte*>(out.At(0)), expected.size() * SizeOf(dtype)));
        for (int32_t i = 0; i < num_rows * width; ++i) {
          const float* const of = &x[i / width * ldx + i % width];
          expected[i / width * ldo + i % width] = reference::Gated(activation, of[0], of[up]);
        }
        EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, dtype).Values())) << width;
      }
    }
  }
}

TEST(RowKernels, LargestElementsAreFoundAsOnTheProcessor) {
  RandomValues random;
  const auto kernels = MakeKernels(Isa::kScalar).value();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int32_t width : {1, 31, 512, 513, 2000, 5003}) {
    const int32_t num_rows = 8, ldx = width + random.Integer(0, 1) * 3;
    std::vector<float> x = random.Floats(num_rows * ldx, DType::kF32, Range::kExtreme);
    for (float& e : x) e = std::round(e);  // many are equal
    std::fill_n(&x[ldx], width, -kInfinity);
    std::fill_n(&x[2 * ldx], width, -0.0f);
    x[3 * ldx + random.Integer(0, width - 1)] = std::numeric_limits<float>::quiet_NaN();
    x[4 * ldx + random.Integer(0, width - 1)] = kInfinity;
    for (const int32_t num_parts : {1, width == 513 ? 40 : 3}) {
      std::vector<PartLargest> parts(num_rows * num_parts);
      std::vector<RowLargest> out(num_rows);
      const FindLargestArgs args = {.x = x.data(),
                                    .ldx = ldx,
                                    .num_rows = num_rows,
                                    .width = width,
                                    .num_parts = num_parts,
                                    .parts = parts.data(),
                                    .out = out.data()};
      if (num_parts == 1) {
        ExpectSameInAnyOrder(FindLargestLaunch(args), std::span(out));
      } else {
        ExpectSameInAnyOrder(FindLargestLaunch(args), std::span(parts));
        ExpectSameInAnyOrder(MergeLargestLaunch(args), std::span(out));
      }
      for (int32_t i = 0; i < num_rows; ++i) {
        const Kernels::Largest expected = kernels->FindLargest(&x[i * ldx], width, nullptr);
        EXPECT_EQ(out[i].finite != 0, expected.finite) << width << " " << num_parts << " " << i;
        if (expected.finite) {
          EXPECT_EQ(out[i].index, expected.argmax) << width << " " << num_parts << " " << i;
        }
      }
    }
  }
}

TEST(RowKernels, LogitsAreDividedAndCapped) {
  RandomValues random;
  for (const auto& [divisor, cap] : {std::pair{1.0f, 30.0f}, {8.0f, 0.0f}, {3.0f, 0.5f}}) {
    std::vector<float> x = random.Floats(3000 + random.Integer(0, 99), DType::kF32, Range::kPlain);
    x[7] = 1e30f;
    x[8] = -1e30f;
    std::vector<float> expected = x;
    for (float& logit : expected) logit /= divisor;
    if (cap > 0) reference::SoftCap(expected, cap);
    RunOnce(FinishLogitsLaunch(
        {.x = x.data(), .num_logits = std::ssize(x), .divisor = divisor, .cap = cap}));
    EXPECT_TRUE(SameBits(x, expected)) << divisor << " " << cap;
  }
}

TEST(RowKernels, EmbeddingsComeFromRowsAndFromPanels) {
  RandomValues random;
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kInt8}) {
    for (const bool panels : {false, true}) {
      if (dtype == DType::kInt8 && !panels) continue;
      const int32_t vocab = 37, num_tokens = 9;
      const int32_t hidden = panels ? random.Integer(1, 200) : 2 * random.Integer(300, 600) + 1;
      const DType file = dtype == DType::kInt8 ? DType::kF32 : dtype;
      const std::vector<float> table = random.Floats(vocab * hidden, file, Range::kPlain);
      PackedWeight packed(vocab, hidden, dtype);
      packed.PackRows(0, vocab, TypedArray(table, file).data(), file);
      const TypedArray rows(table, file);
      std::vector<int32_t> tokens;
      std::vector<float> expected;
      const float scale = panels ? 1.0f : 1.5f;
      for (int32_t i = 0; i < num_tokens; ++i) {
        tokens.push_back(random.Integer(0, vocab - 1));
        std::vector<float> row(hidden);
        packed.UnpackRow(tokens.back(), row.data());
        for (const float e : row) expected.push_back(e * scale);
      }
      std::vector<float> x(num_tokens * hidden);
      ExpectSameInAnyOrder(
          EmbedLaunch(dtype, panels,
                      {.tokens = tokens.data(),
                       .table = panels ? packed.panel(0) : rows.data(),
                       .scales = dtype == DType::kInt8 ? packed.scales() : nullptr,
                       .num_tokens = num_tokens,
                       .hidden = hidden,
                       .words = static_cast<int32_t>(packed.k_padded() * SizeOf(dtype) / 4),
                       .scale = scale,
                       .x = x.data()}),
          std::span(x));
      EXPECT_TRUE(SameBits(x, expected)) << NameOf(dtype);
    }
  }
}

}  // namespace
}  // namespace skein::cuda
