#include "grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace skein {
namespace {

using Schema = nlohmann::ordered_json;

// The members of a schema that hold a schema, schemas by name, or an array of schemas.
constexpr std::array<std::string_view, 5> kSingle = {"items", "additionalProperties",
                                                     "additionalItems", "unevaluatedItems",
                                                     "unevaluatedProperties"};
constexpr std::array<std::string_view, 4> kNamed = {"properties", "patternProperties", "$defs",
                                                    "definitions"};
constexpr std::array<std::string_view, 4> kLists = {"anyOf", "oneOf", "allOf", "prefixItems"};
// If an object's schema has one of these members, `properties` does not list all of the object's
// members.
constexpr std::array<std::string_view, 12> kOpening = {"additionalProperties",
                                                       "patternProperties",
                                                       "unevaluatedProperties",
                                                       "$ref",
                                                       "anyOf",
                                                       "oneOf",
                                                       "allOf",
                                                       "if",
                                                       "dependentSchemas",
                                                       "propertyNames",
                                                       "$dynamicRef",
                                                       "not"};

// The members that describe the elements of an array.
constexpr std::array<std::string_view, 5> kItems = {"items", "prefixItems", "additionalItems",
                                                    "unevaluatedItems", "$ref"};

bool Is(const Schema& schema, const char* type) {
  const auto found = schema.find("type");
  if (found == schema.end()) return false;
  return *found == type || (found->is_array() && std::ranges::find(*found, type) != found->end());
}

bool HasAny(const Schema& schema, const auto& names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return schema.contains(name); });
}

// The keywords that XGrammar ignores without an error.
constexpr std::array<std::string_view, 11> kIgnored = {"not",
                                                       "if",
                                                       "then",
                                                       "else",
                                                       "dependentRequired",
                                                       "dependentSchemas",
                                                       "contains",
                                                       "minContains",
                                                       "maxContains",
                                                       "$dynamicRef",
                                                       "uniqueItems"};

// Keywords that belong to certain types, and keywords that make a schema apply to other types, too.
struct TypedKeywords {
  const char* type;
  std::vector<std::string_view> keywords;
};
const TypedKeywords kTyped[] = {
    {"string", {"minLength", "maxLength", "pattern"}},
    {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
    {"array", {"items", "prefixItems", "minItems", "maxItems", "unevaluatedItems"}},
    {"object",
     {"properties", "required", "minProperties", "maxProperties", "patternProperties",
      "propertyNames", "additionalProperties", "unevaluatedProperties"}}};
constexpr std::array<std::string_view, 8> kOtherwiseTyped = {
    "type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "$dynamicRef"};

// Calls `visit` for each schema that is directly inside `schema`.
void ForEachInner(auto& schema, const auto& visit) {
  for (auto& [name, value] : schema.items()) {
    const auto is = [&key = name](std::string_view other) { return other == key; };
    if (std::ranges::any_of(kSingle, is) && !value.is_array()) {
      visit(value);
    } else if (std::ranges::any_of(kNamed, is) && value.is_object()) {
      for (auto& inner : value) visit(inner);
    } else if ((std::ranges::any_of(kLists, is) || name == "items") && value.is_array()) {
      for (auto& inner : value) visit(inner);
    }
  }
}

bool Combines(const Schema& schema) {
  if (!schema.is_object()) return false;
  const auto all_of = schema.find("allOf");
  if (all_of != schema.end() && all_of->is_array() && all_of->size() > 1) return true;
  bool found = false;
  ForEachInner(schema, [&](const Schema& inner) { found = found || Combines(inner); });
  return found;
}

// Adds the types that the keywords of a schema without `type` imply, since XGrammar ignores these
// keywords there.
void AddImpliedTypes(Schema* schema) {
  if (HasAny(*schema, kOtherwiseTyped)) return;
  std::vector<std::string> types;
  for (const TypedKeywords& typed : kTyped) {
    if (HasAny(*schema, typed.keywords)) types.emplace_back(typed.type);
  }
  if (types.size() == 1) (*schema)["type"] = types.front();
  if (types.size() > 1) (*schema)["type"] = types;
}

void Complete(Schema* schema) {
  if (!schema->is_object()) return;
  AddImpliedTypes(schema);
  ForEachInner(*schema, [](Schema& inner) { Complete(&inner); });
  const bool lists = schema->contains("properties");
  if ((lists || Is(*schema, "object")) && !HasAny(*schema, kOpening)) {
    (*schema)["additionalProperties"] = !lists;
  }
  if (Is(*schema, "array") && !HasAny(*schema, kItems)) (*schema)["items"] = Schema::object();
}

}  // namespace

Schema CompleteSchema(Schema schema) {
  if (!Combines(schema)) Complete(&schema);
  return schema;
}

std::string IgnoredKeyword(const Schema& schema) {
  if (!schema.is_object()) return {};
  for (const std::string_view keyword : kIgnored) {
    const auto found = schema.find(keyword);
    const bool asks_nothing = keyword == "uniqueItems" && found != schema.end() && *found == false;
    if (found != schema.end() && !asks_nothing) return std::string(keyword);
  }
  std::string ignored;
  ForEachInner(schema, [&](const Schema& inner) {
    if (ignored.empty()) ignored = IgnoredKeyword(inner);
  });
  return ignored;
}

}  // namespace skein
