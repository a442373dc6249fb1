#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(ByteSize, ReadsUnits) {
  EXPECT_EQ(ParseByteSize("1536").value(), 1536);
  EXPECT_EQ(ParseByteSize("512MiB").value(), 512 << 20);
  EXPECT_EQ(ParseByteSize("1.5 gib").value(), 3 << 29);
  EXPECT_EQ(ParseByteSize("2GB").value(), 2'000'000'000);
  EXPECT_EQ(ParseByteSize("3k").value(), 3072);
  EXPECT_EQ(ParseByteSize("7 B").value(), 7);
}

TEST(ByteSize, RefusesTheRest) {
  for (const char* bad : {"", "GiB", "-1", "12parsecs", "1e30", "nan", "inf", "1 Gibi", "0x10"})
    EXPECT_FALSE(ParseByteSize(bad).ok()) << bad;
}

TEST(ByteSize, Formats) {
  EXPECT_EQ(FormatByteSize(17), "17 B");
  EXPECT_EQ(FormatByteSize(int64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace skein
