#include "server/decisions/decision_method_names.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <utility>

#include "server/json/field_reader.h"

namespace skein {
namespace {

constexpr int kProfileVersion = 1;
constexpr double kOffsetMax = 100;
struct ProfileType {
  const char* name;
  DecisionMethod DecisionProfile::*method;
  bool has_offset;
};
constexpr std::array<ProfileType, 4> kTypes = {{{"predicate", &DecisionProfile::predicate, true},
                                                {"choice", &DecisionProfile::choice, false},
                                                {"score", &DecisionProfile::score, false},
                                                {"relevance", &DecisionProfile::relevance, true}}};

Status Refused(const std::string& field, std::string_view allowed, std::string_view got) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{} must be {}, got \"{}\"", field, allowed, got), field);
}

// Applies one part of a reading's name. Returns false if there is no such part.
bool ApplyPart(std::string_view part, bool first, NamedReading* named) {
  if (part == "calibrated") {
    named->calibrated = true;
    if (first) named->reading = Reading::kWords;
    return true;
  }
  if (part == "permuted") {
    named->permuted = true;
    if (first) named->reading = Reading::kLetters;
    return true;
  }
  const std::optional<Reading> reading = ChoiceOf<Reading>(part);
  if (!first || !reading) return false;
  named->reading = *reading;
  return true;
}

}  // namespace

std::string ReadingName(const DecisionMethod& method) {
  std::string text(NameOf(method.reading));
  if (method.calibrated) text += "+calibrated";
  if (method.permuted) text += "+permuted";
  return text;
}

std::optional<NamedReading> ReadingOf(std::string_view name) {
  NamedReading named;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('+', begin), name.size());
    if (!ApplyPart(name.substr(begin, end - begin), begin == 0, &named)) return std::nullopt;
    begin = end + 1;
  }
  return named;
}

void SetReading(const NamedReading& reading, DecisionMethod* method) {
  method->reading = reading.reading;
  method->calibrated = reading.calibrated;
  method->permuted = reading.permuted;
}

Result<NamedReading> ParseReading(std::string_view name, const std::string& field) {
  if (const auto reading = ReadingOf(name)) return *reading;
  return Refused(field, kReadingsAllowed, name);
}

Result<PromptForm> ParsePrompt(std::string_view name, const std::string& field) {
  if (const auto prompt = ChoiceOf<PromptForm>(name)) return *prompt;
  return Refused(field, "chat, question or cue", name);
}

Result<DecisionProfile> ParseDecisionProfile(const Json& json, const DecisionProfile& base) {
  if (!json.is_object()) {
    return Status(StatusCode::kInvalidArgument, "must be a JSON object");
  }
  FieldReader reader(json);
  const auto version = reader.Int("version", kProfileVersion, kProfileVersion);
  if (!version) reader.Refuse("version", fmt::format("version must be {}", kProfileVersion));
  DecisionProfile profile = base;
  for (const auto& [type, member, has_offset] : kTypes) {
    const Json* object = reader.Object(type);
    if (object == nullptr) continue;
    DecisionMethod& method = profile.*member;
    FieldReader fields(*object);
    const std::string path = std::string(type) + ".";
    if (const auto name = fields.String("reading")) {
      SKEIN_ASSIGN_OR_RETURN(const NamedReading reading, ParseReading(*name, path + "reading"));
      SetReading(reading, &method);
    }
    if (const auto name = fields.String("prompt")) {
      SKEIN_ASSIGN_OR_RETURN(method.prompt, ParsePrompt(*name, path + "prompt"));
    }
    method.temperature =
        fields.NumberAbove("temperature", 0, kTemperatureMax).value_or(method.temperature);
    if (has_offset) {
      method.offset = fields.Number("offset", -kOffsetMax, kOffsetMax).value_or(0);
    } else if (fields.Find("offset") != nullptr) {
      fields.Refuse("offset", "offset is for predicate and relevance alone");
    }
    if (!fields.status().ok()) {
      return Status(StatusCode::kInvalidArgument, path + fields.status().message());
    }
  }
  if (!reader.status().ok()) return reader.status();
  return profile;
}

Json DecisionProfileJson(const DecisionProfile& profile) {
  Json json;
  json["version"] = kProfileVersion;
  for (const auto& [type, member, has_offset] : kTypes) {
    const DecisionMethod& method = profile.*member;
    Json& entry = json[type];
    entry["reading"] = ReadingName(method);
    entry["prompt"] = NameOf(method.prompt);
    entry["temperature"] = method.temperature;
    if (has_offset) entry["offset"] = method.offset;
  }
  return json;
}

}  // namespace skein
