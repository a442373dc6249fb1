#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace skein {
namespace {

TEST(StopMatcherTest, HoldsBackWhatCouldBeginAStop) {
  StopMatcher matcher({"END", "\n\n"});
  EXPECT_EQ(matcher.Push("abcE"), "abc");
  EXPECT_EQ(matcher.Push("N"), "");
  EXPECT_EQ(matcher.Push("Ex\n"), "ENEx");
  EXPECT_EQ(matcher.matched(), std::nullopt);
  EXPECT_EQ(matcher.Push("y E"), "\ny ");
  EXPECT_EQ(matcher.Push("NDz"), "");
  EXPECT_EQ(matcher.matched(), 0u);
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcherTest, FinishReleasesWhatIsHeld) {
  StopMatcher matcher({"stop"});
  EXPECT_EQ(matcher.Push("st"), "");
  EXPECT_EQ(matcher.Push("o"), "");
  EXPECT_EQ(matcher.Finish(), "sto");
  EXPECT_EQ(matcher.matched(), std::nullopt);
}

TEST(StopMatcherTest, IncludesTheStopStringWhereAsked) {
  StopMatcher matcher({"", "stop"}, true);
  EXPECT_EQ(matcher.Push("a s"), "a ");
  EXPECT_EQ(matcher.Push("top b"), "stop");
  EXPECT_EQ(matcher.matched(), 1u);
}

TEST(StopMatcherTest, WithoutStopsTextPasses) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.Push("anything"), "anything");
  EXPECT_EQ(matcher.Finish(), "");
}

// Compares with a search by the plain definition, on a small alphabet in which borders often
// overlap.
TEST(StopMatcherTest, AgreesWithSearchOnRandomText) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto text_of = [&](size_t size) {
    std::string text;
    while (text.size() < size) text += "ab"[random() % 2];
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(1 + random() % 3);
    for (std::string& stop : stops) stop = text_of(1 + random() % 6);
    const std::string text = text_of(random() % 30);
    const bool include = random() % 2 == 0;
    std::string want = text;
    size_t first_end = std::string::npos;
    for (const std::string& stop : stops) {
      const size_t at = text.find(stop);
      if (at != std::string::npos) first_end = std::min(first_end, at + stop.size());
    }
    if (first_end != std::string::npos) {
      want = text.substr(0, first_end);
      size_t longest = 0;
      for (const std::string& stop : stops) {
        if (want.ends_with(stop)) longest = std::max(longest, stop.size());
      }
      if (!include) want.resize(want.size() - longest);
    }
    StopMatcher matcher(stops, include);
    std::string got;
    for (size_t pos = 0; pos < text.size();) {
      const size_t size = std::min<size_t>(1 + random() % 4, text.size() - pos);
      got += matcher.Push(std::string_view(text).substr(pos, size));
      EXPECT_TRUE(want.starts_with(got)) << "emitted part of a stop string: " << got;
      pos += size;
    }
    got += matcher.Finish();
    EXPECT_EQ(got, want);
    EXPECT_EQ(matcher.matched().has_value(), first_end != std::string::npos);
  }
}

}  // namespace
}  // namespace skein
