#include "bench/kernels/kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "bench/kernels/limits.h"
#include "bench/kernels/onednn.h"
#include "bench/kernels/peak.h"
#include "kernels/cpu/cpu_features.h"
#include "server/json/json.h"

namespace skein {
namespace {

TEST(BenchLimitsTest, RooflineIsTheSlowerOfComputingAndReading) {
  const MachineLimits limits = {.amx_bf16_tflops = 4,
                                .amx_int8_tflops = 8,
                                .fma_f32_tflops = 2,
                                .read_gbps = 10,
                                .avx512_bf16_tflops = 1,
                                .vector_int8_tflops = 4};
  const auto seconds = [&](Isa isa, DType dtype, double bytes) {
    return RooflineSeconds(limits, isa, dtype, 8e12, bytes);
  };
  EXPECT_DOUBLE_EQ(seconds(Isa::kAmx, DType::kBf16, 1e9), 2.0);
  EXPECT_DOUBLE_EQ(seconds(Isa::kAvx2, DType::kBf16, 1e9), 4.0);
  EXPECT_DOUBLE_EQ(seconds(Isa::kAvx512Bf16, DType::kBf16, 1e9), 8.0);
  EXPECT_DOUBLE_EQ(seconds(Isa::kAvx512Bf16, DType::kF32, 1e9), 4.0);
  EXPECT_DOUBLE_EQ(seconds(Isa::kAmx, DType::kBf16, 5e10), 5.0);
  EXPECT_DOUBLE_EQ(seconds(Isa::kAmx, DType::kInt8, 1e9), 1.0);
  EXPECT_DOUBLE_EQ(seconds(Isa::kAvx2, DType::kInt8, 1e9), 2.0);
  const MachineLimits unmeasured = {.read_gbps = 10};
  EXPECT_DOUBLE_EQ(RooflineSeconds(unmeasured, Isa::kAvx2, DType::kInt8, 8e12, 1e9), 0.1);
}

TEST(BenchLimitsTest, MeasuresEveryFigureOfThisMachine) {
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  const bool amx = CpuHas(Isa::kAmx);
  ThreadTeam team(2);
  const auto meter = LimitMeter::Make(&team);
  ASSERT_TRUE(meter.ok()) << meter.status().message();
  const MachineLimits limits = MeasureLimits(*meter.value(), SelectIsa().value(), 1);
  EXPECT_EQ(limits.amx_bf16_tflops > 0, amx);
  EXPECT_EQ(limits.amx_int8_tflops > 0, amx);
  EXPECT_EQ(limits.avx512_bf16_tflops > 0, CpuHas(Isa::kAvx512Bf16));
  EXPECT_GT(limits.fma_f32_tflops, 0);
  EXPECT_GT(limits.vector_int8_tflops, 0);
  EXPECT_GT(limits.read_gbps, 0);
  const MachineLimits now = meter.value()->Now(Isa::kAvx2, DType::kBf16);
  EXPECT_GT(now.compute_tflops(Isa::kAvx2, DType::kBf16), 0);
  EXPECT_GT(now.read_gbps, 0);
  for (const DType integers : {DType::kInt8, DType::kBlocks}) {
    const MachineLimits limits_now = meter.value()->Now(Isa::kAvx2, integers);
    EXPECT_GT(limits_now.compute_tflops(Isa::kAvx2, integers), 0);
  }
}

// With AVX2 forced, the peak is AVX2's, even on a machine with wider vectors.
TEST(BenchLimitsTest, FmasAreThoseOfTheInstructionSet) {
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  const std::vector<float> operands(256, 0.5f);
  float result[16] = {};
  const auto flops_of_a_step = [&](Isa isa) { return RunFmaPeak(isa, operands.data(), 1, result); };
  for (const Isa isa : {Isa::kAvxVnni, Isa::kAvx2}) {
    EXPECT_EQ(flops_of_a_step(isa), 12 * 8 * 2) << NameOf(isa);
  }
  const double widest = CpuHas(Isa::kAvx512) ? 16 * 16 * 2 : 12 * 8 * 2;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx512, Isa::kAmx}) {
    EXPECT_EQ(flops_of_a_step(isa), widest) << NameOf(isa);
  }
}

TEST(BenchLimitsTest, MedianAndMeanGoFigureByFigure) {
  const MachineLimits a = {1, 20, 300, 7}, b = {2, 30, 100, 8}, c = {3, 10, 200, 9};
  const MachineLimits median = MedianOf({a, b, c});
  EXPECT_EQ(median.amx_bf16_tflops, 2);
  EXPECT_EQ(median.amx_int8_tflops, 20);
  EXPECT_EQ(median.fma_f32_tflops, 200);
  EXPECT_EQ(median.read_gbps, 8);
  EXPECT_EQ(MeanOf(a, b).amx_int8_tflops, 25);
  EXPECT_EQ(MeanOf(a, b).read_gbps, 7.5);
}

TEST(BenchKernelsTest, ResultHasTheMembersThatTheHeaderNames) {
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  KernelBenchOptions options;
  options.products = {{"m", "plain", 100, 70}, {"m", "pair", 128, 64, /*swiglu=*/true}};
  options.products.push_back({.model = "m", .name = "sum", .n = 64, .k = 96, .residual = true});
  options.products.push_back({.model = "m", .name = "heads", .n = 96, .k = 64, .head_dim = 32});
  for (ProductToMeasure& product : options.products) product.tiles = product.name != "plain";
  options.rows = {1, 40};
  options.num_samples = 1;
  options.weight_bytes = 1;
  for (const DType dtype : {DType::kBf16, DType::kInt8}) {
    options.dtype = dtype;
    const auto result = RunKernelBench(options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const Json& json = result.value();
    EXPECT_GT(json["limits"]["read_gbps"], 0);
    ASSERT_EQ(json["gemm"].size(), 8u);
    EXPECT_EQ(json["gemm"][1]["m"], 40);
    EXPECT_EQ(json["gemm"][1]["n"], 100);
    EXPECT_EQ(json["gemm"][1]["k"], 70);
    EXPECT_EQ(json["gemm"][2]["name"], "pair");
    for (const Json& row : json["gemm"]) {
      EXPECT_EQ(row["dtype"], NameOf(dtype));
      EXPECT_GT(row["tflops"], 0);
      EXPECT_GT(row["gbps"], 0);
      EXPECT_GT(row["fraction"], 0);
      const bool peer = !row["onednn_tflops"].is_null();
      EXPECT_TRUE(!peer || (dtype == DType::kBf16 && row["onednn_tflops"] > 0));
      EXPECT_EQ(row["onednn_dtype"].is_null(), !peer);
    }
    ASSERT_EQ(json["draws"].size(), 16u);
    EXPECT_EQ(json["draws"][0]["logits"], "peaked");
    EXPECT_EQ(json["draws"][2]["parameters"], "temperature 1");
    for (const Json& row : json["draws"]) EXPECT_GT(row["us"], 0);
  }
}

TEST(BenchKernelsTest, BlocksHaveTheNameOfTheirFormat) {
  if (!CpuHas(Isa::kAvx2)) GTEST_SKIP() << "needs AVX2";
  KernelBenchOptions options;
  options.products = {{"m", "pair", 64, 256, /*swiglu=*/true}};
  options.rows = {1, 40};
  options.num_samples = 1;
  options.weight_bytes = 1;
  options.dtype = DType::kBlocks;
  options.format = BlockFormat::kQ4K;
  const auto result = RunKernelBench(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result.value()["gemm"].size(), 2u);
  for (const Json& row : result.value()["gemm"]) {
    EXPECT_EQ(row["dtype"], "Q4_K");
    EXPECT_GT(row["fraction"], 0);
    EXPECT_TRUE(row["onednn_tflops"].is_null());
  }
}

TEST(BenchKernelsTest, RefusesRowsThatDoNotFitTheMemory) {
  KernelBenchOptions options;
  options.products = {{"m", "wide", 1 << 24, 1 << 20}};
  options.rows = {1, 1 << 16};
  const auto result = RunKernelBench(options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(result.status().message().rfind("--rows 65536: ", 0), 0u) << result.status().message();
}

TEST(BenchKernelsTest, TheYardstickComputesTheSameProduct) {
  // Small integers, whose sums are exact in any order.
  std::vector<Bf16> a, w;
  for (int i = 0; i < 3 * 40; ++i) a.push_back(ToBf16(static_cast<float>(i % 7 - 3)));
  for (int i = 0; i < 20 * 40; ++i) w.push_back(ToBf16(static_cast<float>(i % 5 - 2)));
  const auto product = OneDnnProduct::Make(3, 20, 40, a, w, 2, 1);
  if (product == nullptr) GTEST_SKIP() << "no module with oneDNN";
  EXPECT_EQ(product->dtype(), CpuHas(Isa::kAvx512Bf16) ? DType::kBf16 : DType::kF32);
  for (int weights : {0, 1}) {
    product->Run(weights);
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < 20; ++c) {
        float sum = 0;
        for (int i = 0; i < 40; ++i) sum += ToFloat(a[r * 40 + i]) * ToFloat(w[c * 40 + i]);
        EXPECT_EQ(product->out()[r * 20 + c], sum);
      }
    }
  }
}

}  // namespace
}  // namespace skein
