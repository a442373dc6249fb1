#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/fp_mode.h"
#include "cuda/device/fake_device.h"
#include "cuda/kernels/launches.h"
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

// A random product, with its operands in the device's form.
struct Operands {
  // `surplus`: elements of a row of the output behind its n columns.
  Operands(RandomValues& random, DType compute_type, DType matrix_type, int32_t m, int32_t n,
           int32_t k, int32_t surplus = 3)
      : compute(compute_type),
        matrix(matrix_type),
        shape{m, n, k},
        a(random.Floats(size_t(m) * k, compute, Range::kPlain)),
        w(random.Floats(size_t(n) * k, compute, Range::kPlain)),
        bias(random.Floats(n, DType::kF32, Range::kPlain)),
        ldo(n + surplus),
        out(random.Floats(size_t(m) * ldo, DType::kF32, Range::kPlain)),
        packed(n, k, matrix),
        lda(PaddedWidth(k, matrix)) {
    packed.PackRows(0, n, TypedArray(w, compute).data(), compute);
    std::vector<float> padded(size_t(m) * lda);
    for (int32_t i = 0; i < m; ++i) std::copy_n(&a[size_t(i) * k], k, &padded[size_t(i) * lda]);
    rows.emplace(padded, compute);
    if (matrix == DType::kInt8) {
      quantized.resize(size_t(m) * lda);
      scales.resize(m);
      testing::RunOnce(QuantizeLaunch(compute, {.x = rows->data(),
                                                .ldx = lda,
                                                .num_rows = m,
                                                .width = k,
                                                .out = quantized.data(),
                                                .ldo = lda,
                                                .scales = scales.data()}));
    }
    args = {.a = matrix == DType::kInt8 ? static_cast<const void*>(quantized.data()) : rows->data(),
            .lda = static_cast<int64_t>(lda * SizeOf(matrix) / 4),
            .a_scales = scales.data(),
            .w = packed.panel(0),
            .w_scales = packed.scales(),
            .bias = bias.data(),
            .m = m,
            .columns = n,
            .words = static_cast<int32_t>(packed.k_padded() * SizeOf(matrix) / 4),
            .out = out.data(),
            .ldo = ldo};
  }

  // Computes out = [out +] (a · w^T + bias) by the definition.
  void Expect(bool add, std::vector<float>* result) const {
    const auto gemm = [&](float* to) {
      matrix == DType::kInt8
          ? reference::GemmInt8(shape, a.data(), w.data(), bias.data(), add, to)
          : reference::Gemm(NumericClass::kFma, shape, a.data(), w.data(), bias.data(), add, to);
    };
    std::vector<float> dense(size_t(shape.m) * shape.n);
    for (int32_t i = 0; i < shape.m; ++i) {
      std::copy_n(&(*result)[size_t(i) * ldo], shape.n, &dense[size_t(i) * shape.n]);
    }
    gemm(dense.data());
    for (int32_t i = 0; i < shape.m; ++i) {
      std::copy_n(&dense[size_t(i) * shape.n], shape.n, &(*result)[size_t(i) * ldo]);
    }
  }

  DType compute, matrix;
  reference::GemmShape shape;
  std::vector<float> a, w, bias;
  int32_t ldo;
  std::vector<float> out;
  PackedWeight packed;
  int64_t lda;
  std::optional<TypedArray> rows;
  std::vector<int8_t> quantized;
  std::vector<float> scales;
  GemmArgs args;
};

std::vector<TileSize> TilesOf(DType matrix) {
  using enum TileSize;
  if (matrix == DType::kBf16)
    return {kFew8,   kFew16, kFew32, kDeep32,          kMiddle,
            kDeep64, kLarge, kHuge,  kPersistentLarge, kPersistentHuge};
  if (matrix == DType::kInt8) return {kFew16, kMiddle, kLarge};
  return {kFew16, kMiddle};
}

// A tile whose blocks are few, if they are persistent.
GemmChoice ChoiceOf(TileSize tile) { return {.persistent_blocks = 2, .tile = tile}; }

// Whole tiles and parts of them, one step and several, whole steps and half ones.
TEST(Gemm, HasTheBitsOfTheFmaClassInEveryTile) {
  RandomValues random;
  for (const testing::ProductTypes& types : testing::kProductTypes) {
    for (const TileSize tile : TilesOf(types.matrix)) {
      for (const bool add : {false, true}) {
        const int32_t m = random.Integer(1, 150), n = random.Integer(1, 150);
        // The stages of a block, twice.
        const bool is_deep = tile == TileSize::kDeep32 || tile == TileSize::kDeep64;
        const int32_t most_k = is_deep ? 2200 : tile == TileSize::kFew8 ? 1500 : 1100;
        Operands operands(random, types.compute, types.matrix, m, n, random.Integer(1, most_k));
        std::vector<float> expected = operands.out;
        operands.Expect(add, &expected);
        ExpectSameInAnyOrder(GemmLaunch(types.matrix, add ? GemmOutput::kAdd : GemmOutput::kStore,
                                        DType::kF32, operands.args, ChoiceOf(tile)),
                             std::span(operands.out));
        EXPECT_TRUE(SameBits(operands.out, expected))
            << NameOf(types.matrix) << " " << m << " " << n << " " << operands.shape.k << " "
            << static_cast<int>(tile) << " " << add;
      }
    }
  }
}

// Blocks that compute several tiles each, with more steps than stages and with one alone.
TEST(Gemm, PersistentBlocksComputeTileAfterTile) {
  RandomValues random;
  for (const auto& [k, tile] : {std::pair{24, TileSize::kPersistentHuge},
                                {64, TileSize::kPersistentLarge},
                                {100, TileSize::kPersistentHuge},
                                {200, TileSize::kPersistentLarge},
                                {520, TileSize::kPersistentHuge},
                                {700, TileSize::kPersistentLarge}}) {
    const bool add = k % 200 != 0;
    const int32_t m = random.Integer(257, 500);
    // Rows of 16 bytes, to which four columns are added at a time, and others.
    const bool aligned = k > 100;
    const int32_t n = aligned ? 4 * random.Integer(33, 62) : random.Integer(129, 250);
    Operands operands(random, DType::kBf16, DType::kBf16, m, n, k, aligned ? 4 : 3);
    if (k == 520) {
      std::ranges::fill(operands.bias, 0.0f);
      operands.args.bias = nullptr;
    }
    std::vector<float> expected = operands.out;
    operands.Expect(add, &expected);
    const Launch launch = GemmLaunch(DType::kBf16, add ? GemmOutput::kAdd : GemmOutput::kStore,
                                     DType::kF32, operands.args, ChoiceOf(tile));
    EXPECT_EQ(launch.shape.grid.x, 2);  // of four tiles at least
    ExpectSameInAnyOrder(launch, std::span(operands.out));
    EXPECT_TRUE(SameBits(operands.out, expected)) << m << " " << n << " " << k << " " << add;
  }
}

// Four columns at a time where rows have 16 bytes: whole panels and one of four columns, with a
// bias and without. Outputs at other addresses are added one by one.
TEST(Gemm, PersistentBlocksAddToTheOutputs) {
  RandomValues random;
  for (const int32_t n : {132, 144}) {
    for (const bool biased : {false, true}) {
      for (const int32_t first : {0, 1}) {
        Operands operands(random, DType::kBf16, DType::kBf16, 130, n, 96, 4);
        operands.out.insert(operands.out.begin(), first, 7.0f);
        operands.args.out = operands.out.data() + first;
        if (!biased) {
          std::ranges::fill(operands.bias, 0.0f);
          operands.args.bias = nullptr;
        }
        std::vector<float> expected(operands.out.begin() + first, operands.out.end());
        operands.Expect(true, &expected);
        expected.insert(expected.begin(), first, 7.0f);
        ExpectSameInAnyOrder(GemmLaunch(DType::kBf16, GemmOutput::kAdd, DType::kF32, operands.args,
                                        ChoiceOf(TileSize::kPersistentLarge)),
                             std::span(operands.out));
        EXPECT_TRUE(SameBits(operands.out, expected)) << n << " " << biased << " " << first;
      }
    }
  }
}

// The rows of a product are what the kernel before it writes: rows that are copied before that
// would be old. Weights are copied before.
TEST(Gemm, PersistentBlocksWaitForTheKernelBefore) {
  RandomValues random;
  const int32_t m = 300, n = 140, k = 256;
  Operands operands(random, DType::kBf16, DType::kBf16, m, n, k);
  const std::vector<float> before = operands.out;
  std::vector<float> expected = before;
  operands.Expect(false, &expected);
  for (const bool early : {false, true}) {
    FakeDevice device(
        {.shared_bytes = kSharedBytes, .persistent_blocks = 2, .order = {.early_copies = early}});
    operands.out = before;
    std::vector<Bf16> rows(size_t(m) * operands.lda);
    // It rounds rows of f32: there is no norm.
    device.Run(RmsNormLaunch(DType::kBf16, {.x = operands.a.data(),
                                            .ldx = k,
                                            .num_rows = m,
                                            .width = k,
                                            .out = rows.data(),
                                            .ldo = operands.lda}));
    GemmArgs args = operands.args;
    args.a = rows.data();
    device.Run(GemmLaunch(DType::kBf16, GemmOutput::kStore, DType::kF32, args,
                          ChoiceOf(TileSize::kPersistentLarge)));
    ASSERT_TRUE(device.WaitForAll().ok());
    EXPECT_TRUE(SameBits(operands.out, expected)) << early;
  }
}

TEST(Gemm, TheTileFollowsFromTheShapeAndTheDevice) {
  RandomValues random;
  Operands operands(random, DType::kBf16, DType::kBf16, 1, 16, 64);
  const auto launch = [&](int32_t m, int32_t columns, int64_t shared_bytes = kSharedBytes,
                          int64_t persistent_blocks = kProcessors) {
    GemmArgs args = operands.args;
    args.m = m;
    args.columns = columns;
    args.words = 1280;
    args.lda = 1280;
    return GemmLaunch(DType::kBf16, GemmOutput::kStore, DType::kF32, args,
                      {.shared_bytes = shared_bytes, .persistent_blocks = persistent_blocks});
  };
  EXPECT_EQ(launch(1, 4096).kernel, KernelId::kBf16Few8Store);
  EXPECT_EQ(launch(16, 4096).kernel, KernelId::kBf16Few8Store);
  EXPECT_EQ(launch(64, 4096).kernel, KernelId::kBf16Deep32Store);
  EXPECT_EQ(launch(8192, 4096).kernel, KernelId::kBf16PersistentHugeStore);
  EXPECT_EQ(launch(8192, 4096).shape.grid.x, kProcessors);
  EXPECT_EQ(launch(512, 2560).kernel, KernelId::kBf16LargeStore);
  EXPECT_EQ(launch(256, 19456).kernel, KernelId::kBf16PersistentLargeStore);
  EXPECT_LT(launch(255, 19456).kernel, KernelId::kBf16PersistentLargeStore);
  GemmArgs args = operands.args;
  args.m = 8192;
  args.columns = 4096;
  args.words = args.lda = 1280;
  const auto kernel_of = [](const GemmArgs& product) {
    return GemmLaunch(DType::kBf16, GemmOutput::kStore, DType::kF32, product,
                      {.persistent_blocks = kProcessors})
        .kernel;
  };
  EXPECT_EQ(kernel_of(args), KernelId::kBf16PersistentHugeStore);
  GemmArgs unaligned = args, listed = args;
  unaligned.lda = 1282;
  EXPECT_EQ(kernel_of(unaligned), KernelId::kBf16HugeStore);
  const std::vector<int32_t> panels(256);
  listed.panels = panels.data();
  EXPECT_EQ(kernel_of(listed), KernelId::kBf16HugeStore);
  EXPECT_LE(launch(8192, 4096, kLeastSharedBytes).shape.shared_bytes, kLeastSharedBytes);
  EXPECT_EQ(launch(8192, 4096, kSharedBytes, 0).kernel, KernelId::kBf16HugeStore);
  EXPECT_EQ(launch(8192, 4096, kSharedBytes, 7).shape.grid.x, 7u);
  for (const int32_t m : {1, 9, 100, 1000, 10000}) {
    for (const int32_t columns : {16, 1024, 150000}) {
      EXPECT_LE(launch(m, columns, kLeastSharedBytes).shape.shared_bytes, kLeastSharedBytes);
    }
  }
}

TEST(Gemm, ARowHasTheSameBitsWhateverItsTileAndItsCompany) {
  RandomValues random;
  for (const testing::ProductTypes& types : testing::kProductTypes) {
    const int32_t n = 70, k = 130, many = 94;
    Operands all(random, types.compute, types.matrix, many, n, k);
    testing::RunOnce(GemmLaunch(types.matrix, GemmOutput::kStore, DType::kF32, all.args));
    for (const int32_t row : {0, 17, many - 1}) {
      std::vector<float> alone(n);
      GemmArgs args = all.args;
      args.a = static_cast<const std::byte*>(args.a) + row * args.lda * 4;
      args.a_scales = types.matrix == DType::kInt8 ? args.a_scales + row : nullptr;
      args.m = 1;
      args.out = alone.data();
      testing::RunOnce(GemmLaunch(types.matrix, GemmOutput::kStore, DType::kF32, args));
      const float* in_company = &all.out[size_t(row) * (n + 3)];
      EXPECT_TRUE(SameBits(alone, std::vector<float>(in_company, in_company + n))) << row;
    }
  }
}

struct NamedGate {
  Gate gate;
  Activation activation;
};
constexpr NamedGate kGates[] = {{Gate::kSilu, Activation::kSilu},
                                {Gate::kGelu, Activation::kGelu},
                                {Gate::kGeluTanh, Activation::kGeluTanh},
                                {Gate::kRelu, Activation::kRelu},
                                {Gate::kClampedSwiglu, Activation::kClampedSwiglu}};

TEST(Gemm, GatedProductsAreAnActivationTimesUp) {
  RandomValues random;
  for (const testing::ProductTypes& types : testing::kProductTypes) {
    for (const TileSize tile : TilesOf(types.matrix)) {
      const bool persists = tile >= TileSize::kPersistentLarge;
      const int32_t m = persists ? random.Integer(257, 400) : random.Integer(1, 150);
      const NamedGate& named = kGates[random.Integer(0, std::ssize(kGates) - 1)];
      const int32_t width = random.Integer(persists ? 65 : 1, 90), padded = (width + 15) / 16 * 16;
      const int32_t k = random.Integer(20, 100);
      Operands operands(random, types.compute, types.matrix, m, 2 * padded, k);
      std::vector<float> sums(size_t(m) * (2 * padded + 3));
      operands.Expect(false, &sums);
      const int64_t ldo = PaddedWidth(width, types.compute);
      std::vector<float> expected(m * ldo, 9.0f);
      for (int32_t i = 0; i < m; ++i) {
        const float* row = &sums[size_t(i) * (2 * padded + 3)];
        for (int32_t column = 0; column < width; ++column) {
          expected[i * ldo + column] =
              reference::Gated(named.activation, row[column], row[padded + column]);
        }
      }
      TypedArray out(std::vector<float>(m * ldo, 9.0f), types.compute);
      GemmArgs args = operands.args;
      args.columns = width;
      args.up_panel = padded / 16;
      args.gate = named.gate;
      args.out = out.At(0);
      args.ldo = ldo;
      ExpectSameInAnyOrder(
          GemmLaunch(types.matrix, GemmOutput::kGated, types.compute, args, ChoiceOf(tile)),
          std::span(static_cast<std::byte*>(out.At(0)), m * ldo * SizeOf(types.compute)));
      EXPECT_TRUE(SameBits(out.Values(), TypedArray(expected, types.compute).Values()))
          << NameOf(types.matrix) << " " << m << " " << width << " " << k << " "
          << static_cast<int>(named.gate);
    }
  }
}

TEST(Gemm, ListedPanelsHaveTheBitsOfAll) {
  RandomValues random;
  for (const testing::ProductTypes& types : testing::kProductTypes) {
    const int32_t n = 150, m = 5;
    Operands operands(random, types.compute, types.matrix, m, n, 64);
    operands.args.bias = nullptr;
    testing::RunOnce(GemmLaunch(types.matrix, GemmOutput::kStore, DType::kF32, operands.args));
    const std::vector<int32_t> panels = {7, 0, 9};
    std::vector<float> listed(m * 48);
    GemmArgs args = operands.args;
    args.panels = panels.data();
    args.columns = 48;
    args.out = listed.data();
    args.ldo = 48;
    testing::RunOnce(GemmLaunch(types.matrix, GemmOutput::kStore, DType::kF32, args));
    for (int32_t row = 0; row < m; ++row) {
      for (int32_t i = 0; i < 48; ++i) {
        const int32_t column = panels[i / 16] * 16 + i % 16;
        if (column >= n) continue;
        EXPECT_TRUE(SameBits(listed[row * 48 + i], operands.out[row * (n + 3) + column]));
      }
    }
  }
}

}  // namespace
}  // namespace skein::cuda
