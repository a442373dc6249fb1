#include "server/scheduling_defaults.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <charconv>
#include <utility>

#include "server/json/field_reader.h"
#include "server/json/json.h"
#include "server/json/scheduling_fields.h"

namespace skein {
namespace {

constexpr int64_t kKeyLimitMax = 1'000'000;
constexpr int64_t kKeyTokensMax = 1'000'000'000'000;
constexpr std::array<std::pair<std::string_view, RouteClass>, 4> kClasses = {
    {{"generate", RouteClass::kGenerate},
     {"decide", RouteClass::kDecide},
     {"rank", RouteClass::kRank},
     {"embed", RouteClass::kEmbed}}};

Status RefuseText(const std::string& text) {
  return {StatusCode::kInvalidArgument,
          fmt::format("slo-defaults: '{}' is not CLASS:ttft=MS,tpot=MS,priority=N, where CLASS is "
                      "generate, decide, rank or embed, each at most once, MS is above 0 and at "
                      "most {:.0f}, and N an integer",
                      text, kSloMsMax),
          "slo-defaults"};
}

template <typename Number>
bool ParseNumber(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

// Reads "name=value". Returns false for any other text and for a repeated name.
bool ReadDefault(std::string_view text, SchedulingDefaults* defaults) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  if (name == "priority") {
    if (defaults->priority) return false;
    return ParseNumber(value, &defaults->priority.emplace());
  }
  if (name != "ttft" && name != "tpot") return false;
  std::optional<double>& ms = name == "ttft" ? defaults->slo_ttft_ms : defaults->slo_tpot_ms;
  if (ms) return false;
  return ParseNumber(value, &ms.emplace()) && *ms > 0 && *ms <= kSloMsMax;
}

// Compares two texts. The time does not depend on the position of their first difference.
bool SecretEquals(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace

const char* NameOf(RouteClass route_class) {
  for (const auto& [name, its_class] : kClasses) {
    if (its_class == route_class) return name.data();
  }
  return "other";
}

Result<RouteDefaults> ParseRouteDefaults(const std::vector<std::string>& texts) {
  RouteDefaults routes;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    if (colon == std::string::npos) return RefuseText(text);
    const std::string_view name = std::string_view(text).substr(0, colon);
    SchedulingDefaults* defaults = nullptr;
    for (const auto& [its_name, its_class] : kClasses) {
      if (its_name == name && !routes.contains(its_class)) defaults = &routes[its_class];
    }
    if (defaults == nullptr) return RefuseText(text);
    for (size_t begin = colon + 1;;) {
      const size_t comma = text.find(',', begin);
      if (!ReadDefault(std::string_view(text).substr(begin, comma - begin), defaults)) {
        return RefuseText(text);
      }
      if (comma == std::string::npos) break;
      begin = comma + 1;
    }
  }
  return routes;
}

Result<std::vector<ApiKey>> ParseApiKeys(std::string_view json) {
  const auto refuse = [](const std::string& message) {
    return Status(StatusCode::kInvalidArgument, "api-keys: " + message, "api-keys");
  };
  std::string why;
  const std::optional<Json> array = ParseJson(json, &why);
  if (!array) return refuse("not acceptable JSON: " + why);
  if (!array->is_array() || array->empty()) return refuse("must be an array of at least one key");
  std::vector<ApiKey> keys;
  for (size_t i = 0; i < array->size(); ++i) {
    if (!(*array)[i].is_object()) return refuse(fmt::format("[{}] must be an object", i));
    FieldReader reader((*array)[i]);
    ApiKey key = {.key = reader.String("key").value_or("")};
    key.name = reader.String("name").value_or("");
    key.defaults = ReadSchedulingDefaults(&reader);
    key.requests_per_minute =
        static_cast<int32_t>(reader.Int("requests_per_minute", 1, kKeyLimitMax).value_or(0));
    key.max_parallel_requests =
        static_cast<int32_t>(reader.Int("max_parallel_requests", 1, kKeyLimitMax).value_or(0));
    key.tokens_per_minute = reader.Int("tokens_per_minute", 1, kKeyTokensMax).value_or(0);
    key.tokens_per_day = reader.Int("tokens_per_day", 1, kKeyTokensMax).value_or(0);
    if (!reader.status().ok()) return refuse(fmt::format("[{}].{}", i, reader.status().message()));
    if (key.key.empty()) return refuse(fmt::format("[{}].key must be given and not empty", i));
    for (const ApiKey& other : keys) {
      if (other.key == key.key) return refuse(fmt::format("[{}].key appears twice", i));
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

const ApiKey* FindApiKey(const std::vector<ApiKey>& keys, const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = request.Header("authorization");
  if (given.size() > kBearer.size() && EqualsIgnoreCase(given.substr(0, kBearer.size()), kBearer)) {
    given.remove_prefix(kBearer.size());
  } else {
    given = request.Header("x-api-key");  // Anthropic's clients
  }
  if (given.empty()) return nullptr;
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys) {
    if (SecretEquals(given, key.key)) found = &key;
  }
  return found;
}

}  // namespace skein
