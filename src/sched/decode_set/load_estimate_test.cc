#include "sched/decode_set/load_estimate.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(LoadEstimate, FollowsTheLatestArrivals) {
  LoadEstimate load;
  EXPECT_EQ(load.ArrivalsPerS(0), 0);
  for (int i = 0; i < 40; ++i) load.NoteArrival(100, 10, i * 100'000);
  EXPECT_NEAR(load.ArrivalsPerS(3'900'000), 10, 0.1);
  for (int i = 0; i < 40; ++i) load.NoteArrival(500, 10, 4'000'000 + i * 10'000);
  EXPECT_NEAR(load.ArrivalsPerS(4'390'000), 100, 1);
  EXPECT_NEAR(load.prompt_tokens(), 500, 130);
  EXPECT_LT(load.ArrivalsPerS(14'000'000), 4);  // no arrivals since
}

TEST(LoadEstimate, ManyAtOnceAreAFiniteRate) {
  LoadEstimate load;
  for (int i = 0; i < 40; ++i) load.NoteArrival(100, 10, 5);
  EXPECT_EQ(load.ArrivalsPerS(5), 31'000);
}

// Until a request has ended, its whole budget is the expected output.
TEST(LoadEstimate, OutputsAreAShareOfTheBudget) {
  LoadEstimate load;
  for (int i = 0; i < 40; ++i) load.NoteArrival(100, 200, i);
  EXPECT_DOUBLE_EQ(load.output_tokens(), 200);
  for (int i = 0; i < 40; ++i) load.NoteEnd(50, 200);
  EXPECT_DOUBLE_EQ(load.output_tokens(), 50);
}

}  // namespace
}  // namespace skein
