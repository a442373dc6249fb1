#include "apps/host/closest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace skein {
namespace {

TEST(ClosestName, IsTheLikelyMeaning) {
  const std::vector<std::string> names = {"serve", "sim", "run", "bench", "prefill-only"};
  const auto meant = [&](std::string_view given) { return DidYouMean(given, names); };
  EXPECT_EQ(meant("serv"), "; did you mean 'serve'?");
  EXPECT_EQ(meant("sevre"), "; did you mean 'serve'?");
  EXPECT_EQ(meant("servee"), "; did you mean 'serve'?");
  EXPECT_EQ(meant("bnech"), "; did you mean 'bench'?");
  EXPECT_EQ(meant("prefil_only"), "; did you mean 'prefill-only'?");
  EXPECT_EQ(meant("rum"), "; did you mean 'run'?");
  EXPECT_EQ(meant("decide"), "");
  EXPECT_EQ(meant("x"), "");
  EXPECT_EQ(meant(""), "");
  EXPECT_EQ(DidYouMean("serve", {}), "");
}

}  // namespace
}  // namespace skein
