#include "server/json/json.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

std::string WhyNot(std::string_view text) {
  std::string why;
  EXPECT_FALSE(ParseJson(text, &why).has_value());
  EXPECT_FALSE(ParseJson(text).has_value());
  return why;
}

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string ObjectOf(int num_members) {
  std::string text = "{";
  for (int i = 0; i < num_members; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  }
  return text + "}";
}

TEST(JsonTest, ErrorsSayWhatAndWhere) {
  EXPECT_NE(WhyNot(R"({"temperature": NaN})").find("at byte 17"), std::string::npos);
  EXPECT_NE(WhyNot(R"({"a": 1e999})").find("1e999"), std::string::npos);
  EXPECT_NE(WhyNot("{\"a\": \"\xff\"}").find("UTF-8"), std::string::npos);
  EXPECT_NE(WhyNot("").find("unexpected end of input"), std::string::npos);
  EXPECT_LT(WhyNot("\"" + std::string(100'000, 'x')).size(), 300u);
}

TEST(JsonTest, DepthIsLimited) {
  EXPECT_TRUE(ParseJson(Nested(kJsonDepthMax)).has_value());
  EXPECT_NE(WhyNot(Nested(kJsonDepthMax + 1)).find("128 deep"), std::string::npos);
  EXPECT_NE(WhyNot(std::string(5'000'000, '[')).find("128 deep"), std::string::npos);
  EXPECT_NE(WhyNot(R"({"tools": )" + Nested(1'000'000) + "}").find("deep"), std::string::npos);
  // Brackets within strings do not nest.
  EXPECT_TRUE(ParseJson("\"\\\"" + std::string(1000, '[') + "\"").has_value());
  EXPECT_TRUE(ParseJson("[\"\\\\\"," + Nested(kJsonDepthMax - 1) + "]").has_value());
}

TEST(JsonTest, LookupsAreLimited) {
  EXPECT_TRUE(ParseJson(ObjectOf(8'000)).has_value());
  EXPECT_NE(WhyNot(ObjectOf(9'000)).find("too many members"), std::string::npos);
  // The members of different objects are counted separately.
  std::string many = "[" + ObjectOf(100);
  for (int i = 0; i < 500; ++i) many += "," + ObjectOf(100);
  EXPECT_TRUE(ParseJson(many + "]").has_value());
}

}  // namespace
}  // namespace skein
