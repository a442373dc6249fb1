#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/kernels/launches.h"
#include "cuda/kernels/panel_places.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"
#include "kernels/reference.h"
#include "testing/cuda_launch.h"

namespace skein::cuda {
namespace {

using testing::ExpectSameInAnyOrder;
using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

constexpr BlockFormat kFormats[] = {BlockFormat::kQ4_0,  BlockFormat::kQ4_1, BlockFormat::kQ5_0,
                                    BlockFormat::kQ5_1,  BlockFormat::kQ8_0, BlockFormat::kQ4K,
                                    BlockFormat::kQ5K,   BlockFormat::kQ6K,  BlockFormat::kIq4Nl,
                                    BlockFormat::kIq4Xs, BlockFormat::kInt4, BlockFormat::kMxfp4};

// A random matrix whose panels have these formats in turn. A few of the scales are denormal or
// zero.
class BlockMatrix {
 public:
  BlockMatrix(RandomValues& random, int32_t n, int32_t k, const std::vector<BlockFormat>& formats)
      : weight_(n, k, PanelFormats(n, formats)) {
    for (int32_t row = 0; row < n; row += kPanelCols) {
      const int32_t count = std::min(kPanelCols, n - row);
      const BlockFormat format = weight_.block_panel(row / kPanelCols).format;
      weight_.PackBlocks(row, count, FileRows(random, format, count, k).data(), format);
    }
    places_ = PlacesOf(weight_);
  }

  const PackedWeight& weight() const { return weight_; }
  const PanelPlace* places() const { return places_.data(); }

 private:
  static std::vector<BlockFormat> PanelFormats(int32_t n, const std::vector<BlockFormat>& formats) {
    std::vector<BlockFormat> of_panels;
    for (int32_t i = 0; i < n; i += kPanelCols) {
      of_panels.push_back(formats[i / kPanelCols % formats.size()]);
    }
    return of_panels;
  }
  static void PutHalf(RandomValues& random, std::byte* to) {
    const int32_t exponent = random.Integer(0, 9) == 0 ? 0 : random.Integer(8, 14);
    const auto bits = static_cast<uint16_t>(random.Integer(0, 1) << 15 | exponent << 10 |
                                            random.Integer(0, 1023));
    std::memcpy(to, &bits, sizeof(bits));
  }
  static std::vector<std::byte> FileRows(RandomValues& random, BlockFormat format, int32_t n,
                                         int32_t k) {
    const BlockTraits& traits = TraitsOf(format);
    std::vector<std::byte> rows(size_t(n) * (k / traits.file_elements) * traits.file_bytes);
    for (std::byte& byte : rows) byte = static_cast<std::byte>(random.Integer(0, 255));
    for (size_t at = 0; at < rows.size(); at += traits.file_bytes) {
      if (format == BlockFormat::kMxfp4) {
        const int32_t least = random.Integer(0, 9) == 0 ? 0 : 118;
        rows[at] = static_cast<std::byte>(random.Integer(least, 128));
        continue;
      }
      PutHalf(random, &rows[at + (format == BlockFormat::kQ6K ? 208 : 0)]);
      if (traits.has_minimum()) PutHalf(random, &rows[at + 2]);
    }
    return rows;
  }

  PackedWeight weight_;
  std::vector<PanelPlace> places_;
};

// Rows in int8 with scales for each block, made by the device's kernel.
struct QuantizedRows {
  QuantizedRows(const std::vector<float>& a, DType dtype, int32_t m, int32_t k)
      : lda(PaddedWidth(k, DType::kInt8)), q(m * lda, 99), scales(2 * m * (k / kBlockTerms)) {
    const TypedArray rows(a, dtype);
    ExpectSameInAnyOrder(QuantizeBlocksLaunch(dtype, {.x = rows.data(),
                                                      .ldx = k,
                                                      .num_rows = m,
                                                      .width = k,
                                                      .out = q.data(),
                                                      .ldo = lda,
                                                      .scales = scales.data()}),
                         std::span(scales));
  }

  int64_t lda;
  std::vector<int8_t> q;
  std::vector<float> scales;
};

TEST(GemmBlocks, RowsAreQuantizedAsOnTheProcessor) {
  RandomValues random;
  const auto kernels = MakeKernels(Isa::kScalar).value();
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const int32_t m = 7, k = 96;
    std::vector<float> a = random.Floats(m * k, dtype, Range::kExtreme);
    std::fill_n(a.begin(), 32, 0.0f);                 // a block of zeros
    a[40] = std::numeric_limits<float>::quiet_NaN();  // one with a NaN
    a[70] = -std::numeric_limits<float>::infinity();  // and with an infinity
    const QuantizedRows rows(a, dtype, m, k);
    const TypedArray in(a, dtype);
    for (int32_t row = 0; row < m; ++row) {
      std::vector<int8_t> q(k);
      std::vector<RowBlock> blocks(k / kBlockTerms);
      kernels->QuantizeBlocks(in.At(row * k), dtype, k, q.data(), blocks.data());
      const auto begin = rows.q.begin() + row * rows.lda;
      EXPECT_EQ(std::vector<int8_t>(begin, begin + k), q);
      for (size_t i = 0; i < blocks.size(); ++i) {
        const size_t at = 2 * (row * blocks.size() + i);
        EXPECT_TRUE(SameBits(rows.scales[at], blocks[i].scale));
        EXPECT_TRUE(SameBits(rows.scales[at + 1], blocks[i].scaled_sum));
      }
    }
  }
}

GemmArgs ArgsOf(const QuantizedRows& rows, const BlockMatrix& w, int32_t m) {
  return {.a = rows.q.data(),
          .lda = rows.lda / 4,
          .a_scales = rows.scales.data(),
          .w = w.weight().panel(0),
          .places = w.places(),
          .m = m,
          .columns = w.weight().n(),
          .words = w.weight().k() / 4};
}

TEST(GemmBlocks, HasTheBitsOfTheDefinitionInEveryFormat) {
  RandomValues random;
  for (const BlockFormat format : kFormats) {
    for (const int32_t m : {1, 13, 70}) {
      const int32_t n = random.Integer(1, 60), k = 256 * random.Integer(1, 2), ldo = n + 3;
      const BlockMatrix w(random, n, k, {format});
      const std::vector<float> a = random.Floats(size_t(m) * k, DType::kF32, Range::kPlain);
      const std::vector<float> bias = random.Floats(n, DType::kF32, Range::kPlain);
      const QuantizedRows rows(a, DType::kF32, m, k);
      const bool add = random.Integer(0, 1) == 1;
      std::vector<float> out = random.Floats(size_t(m) * ldo, DType::kF32, Range::kPlain);
      std::vector<float> expected = out, dense(size_t(m) * n);
      for (int32_t i = 0; i < m; ++i) std::copy_n(&out[i * ldo], n, &dense[i * n]);
      reference::GemmBlocks({m, n, k}, a.data(), w.weight(), bias.data(), add, dense.data());
      for (int32_t i = 0; i < m; ++i) std::copy_n(&dense[i * n], n, &expected[i * ldo]);
      GemmArgs args = ArgsOf(rows, w, m);
      args.bias = bias.data();
      args.out = out.data();
      args.ldo = ldo;
      const Launch launch = GemmLaunch(DType::kBlocks, add ? GemmOutput::kAdd : GemmOutput::kStore,
                                       DType::kF32, args);
      m == 13 ? ExpectSameInAnyOrder(launch, std::span(out)) : testing::RunOnce(launch);
      EXPECT_TRUE(SameBits(out, expected)) << TraitsOf(format).name << " " << m << " " << n;
    }
  }
}

// Panels of other formats side by side, gate and up in one product, and listed panels.
TEST(GemmBlocks, MixedPanelsAreGatedAndListed) {
  RandomValues random;
  const int32_t m = random.Integer(5, 50), k = 256, width = 40, padded = 48;
  const BlockMatrix w(random, 2 * padded, k,
                      {BlockFormat::kQ4K, BlockFormat::kQ6K, BlockFormat::kQ8_0, BlockFormat::kQ5K,
                       BlockFormat::kIq4Xs});
  const std::vector<float> a = random.Floats(m * k, DType::kBf16, Range::kPlain);
  const QuantizedRows rows(a, DType::kBf16, m, k);
  std::vector<float> sums(m * 2 * padded);
  reference::GemmBlocks({m, 2 * padded, k}, a.data(), w.weight(), nullptr, false, sums.data());
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    std::vector<float> expected(m * width);
    for (int32_t i = 0; i < m; ++i) {
      const float* row = &sums[i * 2 * padded];
      reference::SiluMul({row, size_t(width)}, row + padded, &expected[i * width]);
    }
    TypedArray out(std::vector<float>(m * width), dtype);
    GemmArgs args = ArgsOf(rows, w, m);
    args.columns = width;
    args.up_panel = padded / kPanelCols;
    args.out = out.At(0);
    args.ldo = width;
    testing::RunOnce(GemmLaunch(DType::kBlocks, GemmOutput::kGated, dtype, args));
    EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, dtype).Values()));
  }
  const std::vector<int32_t> panels = {5, 0, 3};
  std::vector<float> listed(m * 48);
  GemmArgs args = ArgsOf(rows, w, m);
  args.panels = panels.data();
  args.columns = args.ldo = 48;
  args.out = listed.data();
  testing::RunOnce(GemmLaunch(DType::kBlocks, GemmOutput::kStore, DType::kF32, args));
  for (int32_t i = 0; i < m * 48; ++i) {
    const int32_t column = panels[i % 48 / 16] * 16 + i % 16;
    EXPECT_TRUE(SameBits(listed[i], sums[i / 48 * 2 * padded + column]));
  }
}

// Products of many experts beside the products of each alone: experts in every format and in
// several, gate and up in one product, few rows and many, a row of a for two slots.
TEST(GemmBlocks, GroupedProductsHaveTheBitsOfSingleOnes) {
  RandomValues random;
  const int32_t num_experts = 4, panels = 4, k = 256;
  std::vector<std::vector<BlockFormat>> all = {{BlockFormat::kQ4K, BlockFormat::kQ6K,
                                                BlockFormat::kMxfp4, BlockFormat::kQ8_0,
                                                BlockFormat::kQ5K}};
  for (const BlockFormat format : kFormats) all.push_back({format});
  for (const std::vector<BlockFormat>& formats : all) {
    const bool few = random.Integer(0, 1) == 1, gates = random.Integer(0, 1) == 1;
    const DType dtype = random.Integer(0, 1) == 1 ? DType::kBf16 : DType::kF32;
    const testing::RandomGroups groups(random, num_experts, few ? 9 : 50, 2);
    const BlockMatrix w(random, num_experts * panels * kPanelCols, k, formats);
    const int32_t num_rows = groups.num_rows(gates), columns = gates ? 27 : 60, ldo = columns + 1;
    const std::vector<float> a = random.Floats(size_t(num_rows) * k, dtype, Range::kPlain);
    const std::vector<float> bias = random.Floats(w.weight().n(), DType::kF32, Range::kPlain);
    const QuantizedRows rows(a, dtype, num_rows, k);
    const DType out_type = gates ? dtype : DType::kF32;
    const GemmOutput output = gates ? GemmOutput::kGated : GemmOutput::kStore;
    const std::vector<float> before(size_t(groups.num_slots()) * ldo, 3.0f);
    TypedArray out(before, out_type), expected(before, out_type);
    GemmArgs args = ArgsOf(rows, w, num_rows);
    args.bias = bias.data();
    args.columns = columns;
    args.up_panel = 2;
    args.out = out.At(0);
    args.ldo = ldo;
    GemmArgs alone = args;
    args.groups = groups.Groups(panels, gates);
    const Launch launch =
        GroupedGemmLaunch(DType::kBlocks, output, dtype, few ? 1 : 4 * groups.num_slots(), args);
    const std::span memory(static_cast<std::byte*>(out.At(0)), before.size() * SizeOf(out_type));
    few ? ExpectSameInAnyOrder(launch, memory) : testing::RunOnce(launch);
    for (int32_t slot = 0; slot < groups.num_slots(); ++slot) {
      const int32_t row = groups.row(slot, gates), first = groups.expert(slot) * panels;
      alone.a = &rows.q[row * rows.lda];
      alone.a_scales = &rows.scales[2 * row * (k / kBlockTerms)];
      alone.places = w.places() + first;
      alone.bias = &bias[first * kPanelCols];
      alone.m = 1;
      alone.out = expected.At(size_t(slot) * ldo);
      testing::RunOnce(GemmLaunch(DType::kBlocks, output, dtype, alone));
    }
    EXPECT_TRUE(SameBits(out.Values(), expected.Values()))
        << TraitsOf(formats[0]).name << " of " << formats.size() << " " << few << gates;
  }
}

TEST(GemmBlocks, EmbeddingsComeFromBlocks) {
  RandomValues random;
  for (const BlockFormat format : kFormats) {
    const int32_t vocab = 37, hidden = 256, num_tokens = 6;
    const BlockMatrix table(random, vocab, hidden, {format});
    const float scale = random.Integer(0, 1) == 0 ? 1.0f : 1.5f;
    std::vector<int32_t> tokens;
    std::vector<float> expected, x(num_tokens * hidden);
    for (int32_t i = 0; i < num_tokens; ++i) {
      tokens.push_back(random.Integer(0, vocab - 1));
      std::vector<float> row(hidden);
      table.weight().UnpackRow(tokens.back(), row.data());
      for (const float e : row) expected.push_back(scale == 1.0f ? e : e * scale);
    }
    ExpectSameInAnyOrder(EmbedLaunch(DType::kBlocks, true,
                                     {.tokens = tokens.data(),
                                      .table = table.weight().panel(0),
                                      .places = table.places(),
                                      .num_tokens = num_tokens,
                                      .hidden = hidden,
                                      .scale = scale,
                                      .x = x.data()}),
                         std::span(x));
    EXPECT_TRUE(SameBits(x, expected)) << TraitsOf(format).name;
  }
}

}  // namespace
}  // namespace skein::cuda
