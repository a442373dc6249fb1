#include "sched/requests/waiting_sets.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace skein {
namespace {

// Makes sequences, each later in the order than those made before.
class WaitingSetsTest : public ::testing::Test {
 protected:
  Sequence* Make(ExecutionClass execution_class, SequenceState state, int32_t num_missing = 10) {
    auto record = std::make_unique<RequestRecord>();
    record->arrival = records_.size();
    record->execution_class = execution_class;
    record->num_missing = num_missing;
    record->sequences.push_back(std::make_unique<Sequence>(record.get(), 0, PrefixScope{}));
    Sequence* sequence = record->sequences.front().get();
    sequence->state = state;
    records_.push_back(std::move(record));
    sets_.Insert(sequence);
    return sequence;
  }

  static constexpr auto kOneShot = ExecutionClass::kOneShot;
  static constexpr auto kDecode = ExecutionClass::kDecode;
  static constexpr auto kNew = SequenceState::kWaiting;
  static constexpr auto kPreempted = SequenceState::kPreempted;

  WaitingSets sets_;
  std::vector<std::unique_ptr<RequestRecord>> records_;
};

TEST_F(WaitingSetsTest, PreemptedOnesGoBeforeNewOnesOfTheirClass) {
  Sequence* new_read = Make(kOneShot, kNew);
  Sequence* new_answer = Make(kDecode, kNew);
  Sequence* read = Make(kOneShot, kPreempted);
  Sequence* answer = Make(kDecode, kPreempted);
  EXPECT_EQ(sets_.Head(true, true), read);
  EXPECT_EQ(sets_.Head(true, false), read);
  EXPECT_EQ(sets_.Head(false, true), answer);  // even if the other class waits longer
  EXPECT_EQ(sets_.NextFitting(nullptr, 100, true, true), nullptr);
  EXPECT_EQ(sets_.num_preempted(), 2u);
  sets_.Erase(read);
  EXPECT_EQ(sets_.Head(true, true), answer);
  EXPECT_EQ(sets_.Head(true, false), new_read);
  EXPECT_EQ(sets_.NextFitting(nullptr, 100, true, true), new_read);
  EXPECT_EQ(sets_.NextFitting(nullptr, 100, false, true), nullptr);
  sets_.Erase(answer);
  EXPECT_EQ(sets_.Head(true, true), new_read);
  EXPECT_EQ(sets_.Head(false, true), new_answer);
  EXPECT_EQ(sets_.NextFitting(nullptr, 100, false, true), new_answer);
  EXPECT_EQ(sets_.NextFitting(nullptr, 9, true, true), nullptr);
  EXPECT_EQ(sets_.num_new(), 2u);
  EXPECT_EQ(sets_.Head(false, false), nullptr);
}

}  // namespace
}  // namespace skein
