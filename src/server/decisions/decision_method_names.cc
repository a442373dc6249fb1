#include "server/decisions/decision_method_names.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <utility>

#include "server/json/field_reader.h"

namespace skein {
namespace {

constexpr int kProfileVersion = 1;
constexpr double kOffsetMax = 100;
constexpr char kReadings[] =
    "letters, words, similarity or likelihood, with +calibrated or +permuted behind it";

constexpr std::array<std::pair<std::string_view, Reading>, 4> kReadingNames = {
    {{"letters", Reading::kLetters},
     {"words", Reading::kWords},
     {"similarity", Reading::kSimilarity},
     {"likelihood", Reading::kLikelihood}}};
constexpr std::array<std::pair<std::string_view, PromptForm>, 3> kPromptNames = {
    {{"chat", PromptForm::kChat}, {"question", PromptForm::kQuestion}, {"cue", PromptForm::kCue}}};
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

// Sets what one part of a reading's name says. False: there is no such part.
bool SetPart(std::string_view part, bool first, DecisionMethod* method) {
  if (part == "calibrated") {
    method->calibrated = true;
    if (first) method->reading = Reading::kWords;
    return true;
  }
  if (part == "permuted") {
    method->permuted = true;
    if (first) method->reading = Reading::kLetters;
    return true;
  }
  for (const auto& [name, reading] : kReadingNames) {
    if (!first || name != part) continue;
    method->reading = reading;
    return true;
  }
  return false;
}

}  // namespace

std::string ReadingName(const DecisionMethod& method) {
  std::string text;
  for (const auto& [name, reading] : kReadingNames) {
    if (reading == method.reading) text = name;
  }
  if (method.calibrated) text += "+calibrated";
  if (method.permuted) text += "+permuted";
  return text;
}

std::string_view PromptName(PromptForm prompt) {
  for (const auto& [name, form] : kPromptNames) {
    if (form == prompt) return name;
  }
  return {};
}

Status SetReading(std::string_view name, const std::string& field, DecisionMethod* method) {
  DecisionMethod changed = *method;
  changed.calibrated = changed.permuted = false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('+', begin), name.size());
    if (!SetPart(name.substr(begin, end - begin), begin == 0, &changed)) {
      return Refused(field, kReadings, name);
    }
    begin = end + 1;
  }
  *method = changed;
  return Status::Ok();
}

Status SetPrompt(std::string_view name, const std::string& field, DecisionMethod* method) {
  for (const auto& [known, form] : kPromptNames) {
    if (known != name) continue;
    method->prompt = form;
    return Status::Ok();
  }
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
      SKEIN_RETURN_IF_ERROR(SetReading(*name, path + "reading", &method));
    }
    if (const auto name = fields.String("prompt")) {
      SKEIN_RETURN_IF_ERROR(SetPrompt(*name, path + "prompt", &method));
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
    entry["prompt"] = PromptName(method.prompt);
    entry["temperature"] = method.temperature;
    if (has_offset) entry["offset"] = method.offset;
  }
  return json;
}

}  // namespace skein
