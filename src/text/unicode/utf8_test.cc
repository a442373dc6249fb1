#include "text/unicode/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace skein {
namespace {

std::string Lossy(std::string_view bytes) {
  std::string out;
  AppendUtf8Lossy(bytes, &out);
  return out;
}

TEST(Utf8Test, CodePointsRoundTrip) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string text;
    AppendUtf8(c, &text);
    ASSERT_TRUE(IsValidUtf8(text)) << c;
    size_t pos = 0;
    ASSERT_EQ(NextCodePoint(text, &pos), c);
    ASSERT_EQ(pos, text.size());
    ASSERT_EQ(IncompleteSuffixBytes(text), 0u);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(IncompleteSuffixBytes("x" + text.substr(0, cut)), cut) << c;
    }
  }
}

// Tests the examples of the Unicode standard, table 3-8 and after.
TEST(Utf8Test, MaximalPartsBecomeOneReplacement) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(Lossy("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(Lossy("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(Lossy("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(Lossy("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(Lossy("\xE2\x82"), r);
}

// The streaming decoder depends on this property: a cut before an incomplete suffix changes
// nothing.
TEST(Utf8Test, CuttingAtIncompleteSuffixesChangesNothing) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string alphabet = "a\x80\xBF\xC3\xE0\xA0\xED\x9F\xF0\x90\xF4\x8F\xFF";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes, pending, streamed;
    for (size_t size = random() % 12; bytes.size() < size;) {
      bytes += alphabet[random() % alphabet.size()];
      pending += bytes.back();
      const size_t whole = pending.size() - IncompleteSuffixBytes(pending);
      AppendUtf8Lossy(std::string_view(pending).substr(0, whole), &streamed);
      pending.erase(0, whole);
    }
    AppendUtf8Lossy(pending, &streamed);
    EXPECT_EQ(streamed, Lossy(bytes));
    EXPECT_TRUE(IsValidUtf8(streamed));
  }
}

}  // namespace
}  // namespace skein
