#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

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

constexpr Isa kBestFirst[] = {Isa::kAmx, Isa::kAvx512, Isa::kAvx2, Isa::kScalar};

TEST(SelectIsaTest, TakesTheBestThatIsHere) {
  const ScopedForceIsa none(nullptr);
  auto selected = SelectIsa();
  ASSERT_TRUE(selected.ok());
  EXPECT_TRUE(MakeKernels(*selected).ok());
  for (Isa isa : kBestFirst) {
    if (isa == *selected) break;
    EXPECT_FALSE(CpuHas(isa)) << NameOf(isa);
  }
}

TEST(SelectIsaTest, TakesTheForcedOneOrSaysWhyNot) {
  for (Isa isa : kBestFirst) {
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

}  // namespace
}  // namespace skein
