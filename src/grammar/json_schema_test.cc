#include "grammar/json_schema.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

using Schema = nlohmann::ordered_json;

Schema Completed(const char* text) { return CompleteSchema(Schema::parse(text)); }

TEST(JsonSchema, ObjectsThatListPropertiesAreClosed) {
  const Schema schema = Completed(R"({"type": "object", "properties": {
      "inner": {"properties": {"a": {}}}, "list": {"items": {"properties": {"b": {}}}},
      "any": {"type": "object"}, "ref": {"$ref": "#/$defs/d"},
      "open": {"properties": {"c": {}}, "additionalProperties": true},
      "properties": {"type": "string"}},
      "$defs": {"d": {"properties": {"e": {}}}}})");
  EXPECT_EQ(schema["additionalProperties"], false);
  const Schema& properties = schema["properties"];
  EXPECT_FALSE(properties.contains("additionalProperties"));
  EXPECT_EQ(properties["inner"]["additionalProperties"], false);
  EXPECT_EQ(properties["list"]["items"]["additionalProperties"], false);
  EXPECT_EQ(properties["any"]["additionalProperties"], true);
  EXPECT_EQ(Completed(R"({"type": "object", "properties": {}})")["additionalProperties"], false);
  EXPECT_EQ(Completed(R"({"type": ["array", "null"]})")["items"], Schema::object());
  EXPECT_EQ(properties["open"]["additionalProperties"], true);
  EXPECT_EQ(schema["$defs"]["d"]["additionalProperties"], false);
}

TEST(JsonSchema, ASchemaWithoutTypeHasThoseOfItsKeywords) {
  EXPECT_EQ(Completed(R"({"minLength": 2})")["type"], "string");
  EXPECT_EQ(Completed(R"({"properties": {"a": {"minimum": 0}}})")["properties"]["a"]["type"],
            "number");
  EXPECT_EQ(Completed(R"({"required": ["a"]})")["type"], "object");
  EXPECT_EQ(Completed(R"({"maxItems": 3, "pattern": "a"})")["type"], Schema({"string", "array"}));
  EXPECT_EQ(Completed(R"({"type": "integer", "pattern": "a"})")["type"], "integer");
  for (const char* text : {"{}", R"({"const": 1, "minimum": 0})", R"({"description": "any"})"}) {
    EXPECT_FALSE(Completed(text).contains("type")) << text;
  }
}

TEST(JsonSchema, KeywordsThatWouldBeIgnored) {
  const auto ignored = [](const char* text) { return IgnoredKeyword(Schema::parse(text)); };
  EXPECT_EQ(ignored(R"({"properties": {"a": {"not": {"const": 1}}}})"), "not");
  EXPECT_EQ(ignored(R"({"items": {"anyOf": [{}, {"if": {}, "then": {}}]}})"), "if");
  EXPECT_EQ(ignored(R"({"$defs": {"a": {"uniqueItems": true}}})"), "uniqueItems");
  EXPECT_EQ(ignored(R"({"uniqueItems": false, "properties": {"not": {}}})"), "");
  EXPECT_EQ(ignored(R"({"contains": false})"), "contains");
}

TEST(JsonSchema, CombinedSchemasStayAsTheyAre) {
  const char* const kCombined =
      R"({"properties": {"a": {"allOf": [{"$ref": "#/$defs/d"}, {"properties": {"b": {}}}]}},
          "$defs": {"d": {"properties": {"e": {}}}}})";
  EXPECT_EQ(Completed(kCombined), Schema::parse(kCombined));
  // Values that look like schemas, but are not, stay unchanged, too.
  const char* const kTexts =
      R"({"enum": [{"properties": {"a": 1}}], "default": {"properties": {"a": 1}}})";
  EXPECT_EQ(Completed(kTexts), Schema::parse(kTexts));
  EXPECT_EQ(Completed("true"), Schema(true));
}

}  // namespace
}  // namespace skein
