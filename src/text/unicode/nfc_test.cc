#include "text/unicode/nfc.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(NfcTest, ComposesAndOrders) {
  const Nfc nfc;
  EXPECT_EQ(nfc.Normalize(""), "");
  EXPECT_EQ(nfc.Normalize("plain"), "plain");
  EXPECT_EQ(nfc.Normalize("e\u0301"), "\u00e9");
  EXPECT_EQ(nfc.Normalize("\u0301e"), "\u0301e");              // nothing before it to compose with
  EXPECT_EQ(nfc.Normalize("\u212b"), "\u00c5");                // singleton
  EXPECT_EQ(nfc.Normalize("q\u0307\u0323"), "q\u0323\u0307");  // canonical order
  EXPECT_EQ(nfc.Normalize("d\u0307\u0323"), "\u1e0d\u0307");
  EXPECT_EQ(nfc.Normalize("a\u0305\u0301"),
            "a\u0305\u0301");                          // blocked by a mark of the same class
  EXPECT_EQ(nfc.Normalize("\u0958"), "\u0915\u093c");  // composition exclusion
  EXPECT_EQ(nfc.Normalize("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(nfc.Normalize("\uac00\u11a8"), "\uac01");
  EXPECT_EQ(nfc.Normalize("\uac01\u11a8"), "\uac01\u11a8");
}

// A composite of Unicode 13 (Dives Akuru), which the data of the reference does not contain.
TEST(NfcTest, LaterCompositesAreInert) {
  EXPECT_EQ(Nfc().Normalize("\U00011935\U00011930"), "\U00011935\U00011930");
}

}  // namespace
}  // namespace skein
