#include "sched/batching/fit_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "base/random.h"

namespace skein {
namespace {

// Only the addresses of the sequences are used.
TEST(FitTree, AnswersWhatAScanAnswers) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RequestRecord request;
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (int i = 0; i < 64; ++i) {
      sequences.push_back(std::make_unique<Sequence>(&request, i, PrefixScope{}));
    }
    struct Entry {
      int32_t weight = 0;
      Sequence* sequence = nullptr;
    };
    std::map<SequenceKey, Entry> reference;
    FitTree tree;
    const auto random_key = [&random] {
      return SequenceKey{{static_cast<int32_t>(random.Between(0, 1)), random.Between(-4, 4)},
                         static_cast<uint64_t>(random.Between(0, 4))};
    };
    for (int round = 0; round < 5000; ++round) {
      const SequenceKey key = random_key();
      if (random.OneIn(2)) {
        const Entry entry = {static_cast<int32_t>(random.Between(1, 20)),
                             sequences[random.Between(0, 63)].get()};
        EXPECT_EQ(tree.Insert(key, entry.weight, entry.sequence),
                  reference.emplace(key, entry).second);
      } else {
        EXPECT_EQ(tree.Erase(key), reference.erase(key) == 1);
      }
      ASSERT_EQ(tree.size(), reference.size());
      EXPECT_EQ(tree.Contains(key), reference.contains(key));
      EXPECT_EQ(tree.First(), reference.empty() ? nullptr : reference.begin()->second.sequence);
      const SequenceKey after = random_key();
      const auto max_weight = static_cast<int32_t>(random.Between(0, 21));
      const bool from_begin = random.OneIn(4);
      const Sequence* expected = nullptr;
      for (const auto& [its_key, entry] : reference) {
        if ((!from_begin && !(after < its_key)) || entry.weight > max_weight) continue;
        expected = entry.sequence;
        break;
      }
      ASSERT_EQ(tree.NextFitting(from_begin ? nullptr : &after, max_weight), expected);
    }
  }
}

}  // namespace
}  // namespace skein
