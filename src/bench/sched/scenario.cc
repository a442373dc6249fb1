#include "bench/sched/scenario.h"

#include <fmt/format.h>

#include <fstream>
#include <initializer_list>
#include <iterator>
#include <set>

#include "apps/read_json.h"
#include "base/check.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr int32_t kMaxTokens = 1 << 24;
constexpr int32_t kMaxCount = 100'000;

// Reads the members of one JSON object. A member that the code does not read is an unknown field.
class Fields {
 public:
  // `prefix` is put before the names of members in messages.
  Fields(const Json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

  bool Has(const char* name) {
    asked_.insert(name);
    return object_.contains(name);
  }
  const Json& At(const char* name) const { return object_.at(name); }
  std::string Name(const std::string& name) const { return prefix_ + name; }

  Status Read(const char* name, std::string* value) {
    if (!Has(name)) return Status::Ok();
    if (!At(name).is_string()) return FieldError(Name(name), "a string");
    *value = At(name).get<std::string>();
    return Status::Ok();
  }
  Status Read(const char* name, bool* value) {
    if (!Has(name)) return Status::Ok();
    if (!At(name).is_boolean()) return FieldError(Name(name), "true or false");
    *value = At(name).get<bool>();
    return Status::Ok();
  }
  template <typename Number>
  Status Read(const char* name, double low, double high, Number* value) {
    if (!Has(name)) return Status::Ok();
    const Json& json = At(name);
    constexpr bool kInteger = std::is_integral_v<Number>;
    if (!(kInteger ? json.is_number_integer() : json.is_number()) || json.get<double>() < low ||
        json.get<double>() > high) {
      return FieldError(Name(name), fmt::format("{} in [{}, {}]",
                                                kInteger ? "an integer" : "a number", low, high));
    }
    *value = json.get<Number>();
    return Status::Ok();
  }
  // Reads a number n, which means [n, n], or a pair.
  Status Read(const char* name, int32_t low, IntRange* value) {
    if (!Has(name)) return Status::Ok();
    const Json& json = At(name);
    const auto fits = [&](const Json& number) {
      return number.is_number_integer() && number.get<double>() >= low &&
             number.get<double>() <= kMaxTokens;
    };
    if (fits(json)) {
      *value = {json.get<int32_t>(), json.get<int32_t>()};
    } else if (json.is_array() && json.size() == 2 && fits(json[0]) && fits(json[1]) &&
               json[0].get<int32_t>() <= json[1].get<int32_t>()) {
      *value = {json[0].get<int32_t>(), json[1].get<int32_t>()};
    } else {
      return FieldError(
          Name(name), fmt::format("an integer in [{}, {}] or an ascending pair", low, kMaxTokens));
    }
    return Status::Ok();
  }

  Status CheckAllKnown() const {
    for (const auto& [name, value] : object_.items()) {
      if (!asked_.contains(name)) {
        return Status(StatusCode::kInvalidArgument, Name(name) + " is not a known field",
                      Name(name));
      }
    }
    return Status::Ok();
  }

 private:
  const Json& object_;
  std::string prefix_;
  std::set<std::string> asked_;
};

Status ReadArrival(const Json& json, ArrivalPattern* arrival) {
  if (!json.is_object()) return FieldError("arrival", "an object");
  Fields fields(json, "arrival.");
  std::string pattern = "bursts";
  SKEIN_RETURN_IF_ERROR(fields.Read("pattern", &pattern));
  if (pattern == "bursts") {
    arrival->kind = ArrivalPattern::Kind::kBursts;
    SKEIN_RETURN_IF_ERROR(fields.Read("size", 0, kMaxCount, &arrival->size));
    SKEIN_RETURN_IF_ERROR(fields.Read("interval_s", 0, 3600, &arrival->interval_s));
  } else if (pattern == "poisson") {
    arrival->kind = ArrivalPattern::Kind::kPoisson;
    SKEIN_RETURN_IF_ERROR(fields.Read("rate_per_s", 1e-3, 1e6, &arrival->rate_per_s));
    if (!fields.Has("rate_per_s")) return FieldError("arrival.rate_per_s", "given");
  } else if (pattern == "closed") {
    arrival->kind = ArrivalPattern::Kind::kClosed;
    SKEIN_RETURN_IF_ERROR(fields.Read("concurrency", 1, kMaxCount, &arrival->concurrency));
  } else {
    return FieldError("arrival.pattern", "bursts, poisson or closed, not '" + pattern + "'");
  }
  return fields.CheckAllKnown();
}

Status ReadSampling(const Json& json, const std::string& name, SamplingParams* sampling) {
  if (!json.is_object()) return FieldError(name, "an object");
  Fields fields(json, name + ".");
  SKEIN_RETURN_IF_ERROR(fields.Read("temperature", 0, 2, &sampling->temperature));
  SKEIN_RETURN_IF_ERROR(fields.Read("top_k", 0, kMaxTokens, &sampling->top_k));
  SKEIN_RETURN_IF_ERROR(fields.Read("top_p", 1e-6, 1, &sampling->top_p));
  SKEIN_RETURN_IF_ERROR(fields.Read("min_p", 0, 1, &sampling->min_p));
  SKEIN_RETURN_IF_ERROR(fields.Read("repetition_penalty", 1e-3, 10, &sampling->repetition_penalty));
  SKEIN_RETURN_IF_ERROR(fields.Read("presence_penalty", -2, 2, &sampling->presence_penalty));
  SKEIN_RETURN_IF_ERROR(fields.Read("frequency_penalty", -2, 2, &sampling->frequency_penalty));
  SKEIN_RETURN_IF_ERROR(fields.Read("seed", 0, 1e15, &sampling->seed));
  return fields.CheckAllKnown();
}

Status ReadRequests(const Json& json, const std::string& name, ScenarioRequests* requests) {
  if (!json.is_object()) return FieldError(name, "an object");
  Fields fields(json, name + ".");
  requests->sampling.temperature = 0;
  SKEIN_RETURN_IF_ERROR(fields.Read("class", &requests->request_class));
  SKEIN_RETURN_IF_ERROR(fields.Read("count", 1, kMaxCount, &requests->count));
  SKEIN_RETURN_IF_ERROR(fields.Read("prompt", &requests->prompt));
  SKEIN_RETURN_IF_ERROR(fields.Read("prompt_tokens", 1, &requests->prompt_tokens));
  SKEIN_RETURN_IF_ERROR(
      fields.Read("shared_prefix_tokens", 0, kMaxTokens, &requests->shared_prefix_tokens));
  if (requests->prompt.empty() == (requests->prompt_tokens.high == 0)) {
    return FieldError(fields.Name("prompt"), "given exactly once: as prompt or as prompt_tokens");
  }
  if (requests->shared_prefix_tokens > requests->prompt_tokens.low) {
    return FieldError(fields.Name("shared_prefix_tokens"), "at most prompt_tokens");
  }
  SKEIN_RETURN_IF_ERROR(fields.Read("max_tokens", 0, &requests->max_tokens));
  SKEIN_RETURN_IF_ERROR(fields.Read("ignore_eos", &requests->ignore_eos));
  if (fields.Has("sampling")) {
    SKEIN_RETURN_IF_ERROR(
        ReadSampling(fields.At("sampling"), fields.Name("sampling"), &requests->sampling));
  }
  return fields.CheckAllKnown();
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return Status(StatusCode::kInvalidArgument, "is not a JSON object");
  }
  Scenario scenario;
  Fields fields(object, "");
  SKEIN_RETURN_IF_ERROR(fields.Read("name", &scenario.name));
  if (scenario.name.empty()) return FieldError("name", "a string that is not empty");
  SKEIN_RETURN_IF_ERROR(fields.Read("description", &scenario.description));
  SKEIN_RETURN_IF_ERROR(fields.Read("seed", 0, 1e15, &scenario.seed));
  SKEIN_RETURN_IF_ERROR(fields.Read("time_limit_s", 0.001, 86400, &scenario.time_limit_s));
  if (fields.Has("arrival")) {
    SKEIN_RETURN_IF_ERROR(ReadArrival(fields.At("arrival"), &scenario.arrival));
  }
  if (!fields.Has("requests") || !fields.At("requests").is_array() ||
      fields.At("requests").empty()) {
    return FieldError("requests", "a list of at least one kind of request");
  }
  int64_t total = 0;
  for (size_t i = 0; i < fields.At("requests").size(); ++i) {
    scenario.requests.emplace_back();
    SKEIN_RETURN_IF_ERROR(ReadRequests(fields.At("requests")[i], fmt::format("requests[{}]", i),
                                       &scenario.requests.back()));
    total += scenario.requests.back().count;
  }
  if (total > kMaxCount) {
    return FieldError("requests", fmt::format("at most {} in all, not {}", kMaxCount, total));
  }
  SKEIN_RETURN_IF_ERROR(fields.CheckAllKnown());
  return scenario;
}

Result<Scenario> LoadScenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, "scenario " + path + " cannot be opened");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto scenario = ParseScenario(text);
  if (scenario.ok()) return scenario;
  return Status(scenario.status().code(), "scenario " + path + ": " + scenario.status().message(),
                scenario.status().param());
}

void LimitRequests(int32_t max_requests, Scenario* scenario) {
  SKEIN_CHECK(max_requests > 0);
  std::vector<ScenarioRequests>& kinds = scenario->requests;
  std::vector<int32_t> counts(kinds.size(), 0);
  int32_t left = max_requests;
  bool any = true;
  while (any && left > 0) {
    any = false;
    for (size_t kind = 0; kind < kinds.size() && left > 0; ++kind) {
      if (counts[kind] == kinds[kind].count) continue;
      any = true;
      ++counts[kind];
      --left;
    }
  }
  for (size_t kind = 0; kind < kinds.size(); ++kind) kinds[kind].count = counts[kind];
  std::erase_if(kinds, [](const ScenarioRequests& requests) { return requests.count == 0; });
}

}  // namespace skein
