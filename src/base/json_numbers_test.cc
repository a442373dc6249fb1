#include "base/json_numbers.h"

#include <gtest/gtest.h>

#include <string>

namespace skein {
namespace {

TEST(JsonNumbers, IntegersBeyond64BitsBecomeDoubles) {
  EXPECT_EQ(WithReadableNumbers(R"({"a": 1000000000000000019884624838656})"), R"({"a": 1e+30})");
  EXPECT_EQ(WithReadableNumbers("[18446744073709551616]"), "[1.8446744073709552e+19]");
  EXPECT_EQ(WithReadableNumbers("[-9223372036854775809,7]"), "[-9.223372036854776e+18,7]");
}

TEST(JsonNumbers, NumbersBeyondDoublesBecomeTheLargest) {
  EXPECT_EQ(WithReadableNumbers("1e999"), "1.7976931348623157e+308");
  EXPECT_EQ(WithReadableNumbers("-1.5E+400"), "-1.7976931348623157e+308");
  EXPECT_EQ(WithReadableNumbers(std::string(400, '9')), "1.7976931348623157e+308");
}

TEST(JsonNumbers, TheRestStays) {
  for (const char* same :
       {R"({"a": [1, -2, 3.25, 1e-5, 1e-999, 18446744073709551615, -9223372036854775808]})",
        R"("1000000000000000019884624838656")", R"(["\"1000000000000000019884624838656", "\\"])",
        R"({"1000000000000000019884624838656": null})", R"("1000000000000000019884624838656)",
        // These are not numbers: the reader must refuse them.
        "01000000000000000019884624838656", "-", "1.e999", "1e", "--10000000000000000000000000",
        ""}) {
    EXPECT_EQ(WithReadableNumbers(same), same);
  }
}

}  // namespace
}  // namespace skein
