#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

TEST(ByteSize, ReadsUnits) {
  EXPECT_EQ(ParseByteSize("memory", "1536").value(), 1536);
  EXPECT_EQ(ParseByteSize("memory", "512MiB").value(), 512 << 20);
  EXPECT_EQ(ParseByteSize("memory", "1.5 gib").value(), 3 << 29);
  EXPECT_EQ(ParseByteSize("memory", "2GB").value(), 2'000'000'000);
  EXPECT_EQ(ParseByteSize("memory", "3k").value(), 3072);
  EXPECT_EQ(ParseByteSize("memory", "7 B").value(), 7);
}

TEST(ByteSize, RefusesTheRest) {
  for (const char* bad :
       {"", "GiB", "-1", "0", "0.5", "0GiB", "12parsecs", "1e30", "nan", "inf", "1 Gibi", "0x10"}) {
    const Status status = ParseByteSize("kv-cache-memory", bad).status();
    EXPECT_EQ(status.message().find("kv-cache-memory: '" + std::string(bad) + "'"), 0u) << bad;
    EXPECT_EQ(status.param(), "kv-cache-memory");
  }
}

TEST(ByteSize, Formats) {
  EXPECT_EQ(FormatByteSize(17), "17 B");
  EXPECT_EQ(FormatByteSize(int64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace skein
