#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/fp_mode.h"
#include "kernels/cpu/cpu_features.h"

namespace skein {
namespace {

// Sets an environment variable for a test (one thread), or removes it.
class ScopedForceIsa {
 public:
  explicit ScopedForceIsa(const char* value) {
    const char* former = std::getenv("SKEIN_FORCE_ISA");
    if (former != nullptr) former_ = former;
    value != nullptr ? setenv("SKEIN_FORCE_ISA", value, 1) : unsetenv("SKEIN_FORCE_ISA");
  }
  ~ScopedForceIsa() {
    former_.empty() ? unsetenv("SKEIN_FORCE_ISA") : setenv("SKEIN_FORCE_ISA", former_.c_str(), 1);
  }

 private:
  std::string former_;
};

constexpr Isa kAllIsas[] = {Isa::kAmx,     Isa::kAvx512Bf16, Isa::kAvx512Bf16Fma, Isa::kAvx512,
                            Isa::kAvxVnni, Isa::kAvx2,       Isa::kScalar};

TEST(SelectIsaTest, TakesTheBestThatIsHere) {
  const ScopedForceIsa none(nullptr);
  auto selected = SelectIsa();
  ASSERT_TRUE(selected.ok());
  EXPECT_TRUE(MakeKernels(*selected).ok());
  const std::vector<Isa> here = IsasHere();
  EXPECT_EQ(here.front(), *selected);
  EXPECT_EQ(here.back(), Isa::kScalar);
  for (Isa isa : kAllIsas) {
    EXPECT_EQ(std::count(here.begin(), here.end(), isa), CpuHas(isa) ? 1 : 0) << NameOf(isa);
  }
  // FMAs take the place of slow dot products, and otherwise stand right behind them.
  const auto dots = std::find(here.begin(), here.end(), Isa::kAvx512Bf16);
  if (dots != here.end()) {
    EXPECT_EQ(*(CpuHasFastBf16Dots() ? dots + 1 : dots - 1), Isa::kAvx512Bf16Fma);
  }
}

TEST(SelectIsaTest, TakesTheForcedOneOrSaysWhyNot) {
  for (Isa isa : kAllIsas) {
    const ScopedForceIsa forced(NameOf(isa));
    auto selected = SelectIsa();
    auto made = MakeKernels(isa);
    ASSERT_EQ(selected.ok(), CpuHas(isa)) << NameOf(isa);
    ASSERT_EQ(made.ok(), CpuHas(isa)) << NameOf(isa);
    if (selected.ok()) {
      EXPECT_EQ(*selected, isa);
      EXPECT_EQ(made.value()->isa(), isa);
    } else {
      EXPECT_EQ(selected.status().code(), StatusCode::kUnsupported);
      EXPECT_EQ(made.status().code(), StatusCode::kUnsupported);
      EXPECT_NE(selected.status().message().find(NameOf(isa)), std::string::npos);
    }
  }
}

TEST(SelectIsaTest, RefusesUnknownNames) {
  for (const char* name : {"", "avx", "AVX2", "avx5122"}) {
    const ScopedForceIsa forced(name);
    const auto selected = SelectIsa();
    ASSERT_FALSE(selected.ok());
    EXPECT_EQ(selected.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(selected.status().message().find("avx512"), std::string::npos);
  }
}

// Wrong shapes are bugs of the caller. They end the process before any data is read.
TEST(KernelsDeathTest, RefusesWrongShapes) {
  const auto kernels = std::move(MakeKernels(Isa::kScalar)).value();
  const PackedWeight w(40, 8, DType::kF32);
  std::vector<float> a(8), out(40);
  const GemmCall good = {
      .a = a.data(), .lda = 8, .m = 1, .w = &w, .n_end = 40, .out = out.data(), .ldo = 40};
  kernels->Gemm(good);
  GemmCall call = good;
  call.n_begin = 8;
  EXPECT_DEATH(kernels->Gemm(call), "n_begin % kPanelCols");
  call = good;
  call.n_end = 41;
  EXPECT_DEATH(kernels->Gemm(call), "n_end");
  call = good;
  call.lda = 7;
  EXPECT_DEATH(kernels->Gemm(call), "lda");
  const KvLayout layout = {DType::kF32, 1, 2, 1, 8};
  const std::vector<int32_t> block_table = {0};
  const AttentionRow row = {a.data(), out.data(), 33, 1, block_table.data()};
  EXPECT_DEATH(kernels->Attention({.rows = {&row, 1}, .layout = &layout}), "num_keys");
}

// A caller that uses another floating-point mode gets the same bits and keeps its mode.
TEST(KernelsTest, SetTheFloatingPointModeThemselves) {
  ASSERT_FALSE(ScopedFpMode::IsSet());
  for (Isa isa : kAllIsas) {
    if (!CpuHas(isa)) continue;
    const auto kernels = std::move(MakeKernels(isa)).value();
    float out = 1.0f;
    const float tiny = 0x1p-130f, one = 1.0f;
    kernels->SiluMul(&one, &tiny, 1, &out, DType::kF32);
    EXPECT_EQ(out, 0.0f) << NameOf(isa);
    EXPECT_FALSE(ScopedFpMode::IsSet());
  }
}

}  // namespace
}  // namespace skein
