#include "kv/hash_slots.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace skein {
namespace {

// Few different homes, so that probe runs are long and wrap around the table's end.
TEST(HashSlots, AgreesWithAMap) {
  Random random(7);
  for (const int32_t most : {1, 2, 5, 16}) {
    HashSlots slots(most);
    std::map<uint64_t, int32_t> expected;
    for (int i = 0; i < 4000; ++i) {
      const uint64_t hash = 64 * random.Between(0, 20) + 30 + random.Between(0, 2);
      ASSERT_EQ(slots.Find(hash), expected.contains(hash) ? expected[hash] : HashSlots::kNone);
      if (expected.contains(hash)) {
        slots.Erase(hash);
        expected.erase(hash);
      } else if (std::ssize(expected) < most) {
        slots.Insert(hash, i);
        expected[hash] = i;
      }
      ASSERT_EQ(slots.size(), std::ssize(expected));
      for (const auto& [key, number] : expected) ASSERT_EQ(slots.Find(key), number);
    }
  }
}

}  // namespace
}  // namespace skein
