#include "server/decisions/baseline_cache.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(BaselineCacheTest, ForgetsWhatWasUsedLeastRecently) {
  BaselineCache cache(3 * 300);  // room for three entries with a short key and one number each
  for (const char* key : {"a", "b", "c"}) cache.Put(key, {1});
  ASSERT_NE(cache.Find("a"), nullptr);
  EXPECT_EQ(cache.Find("a")->front(), 1);
  cache.Put("d", {4});
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("d"), nullptr);
  // A second Put of a known key keeps the first value: both callers computed the same value.
  cache.Put("d", {5});
  EXPECT_EQ(cache.Find("d")->front(), 4);
  // An entry larger than the whole cache is not kept. Entries that are held elsewhere stay valid.
  const auto held = cache.Find("a");
  cache.Put(std::string(1000, 'x'), {6});
  EXPECT_EQ(cache.Find(std::string(1000, 'x')), nullptr);
  EXPECT_EQ(held->front(), 1);
}

}  // namespace
}  // namespace skein
