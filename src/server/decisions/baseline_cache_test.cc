#include "server/decisions/baseline_cache.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(BaselineCacheTest, ForgetsWhatWasUsedLeastRecently) {
  BaselineCache cache(3 * 300);  // room for three entries of a short key and one number
  for (const char* key : {"a", "b", "c"}) cache.Put(key, {1});
  ASSERT_NE(cache.Find("a"), nullptr);
  EXPECT_EQ(cache.Find("a")->front(), 1);
  cache.Put("d", {4});
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("d"), nullptr);
  // A known key keeps its value: whoever computed it got the same.
  cache.Put("d", {5});
  EXPECT_EQ(cache.Find("d")->front(), 4);
  // A pair larger than the whole cache is not kept. The other pairs stay as they are to their
  // holders.
  const auto held = cache.Find("a");
  cache.Put(std::string(1000, 'x'), {6});
  EXPECT_EQ(cache.Find(std::string(1000, 'x')), nullptr);
  EXPECT_EQ(held->front(), 1);
}

}  // namespace
}  // namespace skein
