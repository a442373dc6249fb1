#include "apps/sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "apps/read_json.h"
#include "base/check.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr int64_t kMaxPromptTokens = int64_t{1} << 24;
constexpr double kMaxSeconds = 1e9;

// The vocabulary of prompts as text. It is part of the workload format.
constexpr std::array<std::string_view, 64> kWords = {
    "time",     "year",    "people",   "way",    "day",        "man",    "thing",   "woman",
    "life",     "child",   "world",    "school", "state",      "family", "student", "group",
    "country",  "problem", "hand",     "part",   "place",      "case",   "week",    "company",
    "system",   "program", "question", "work",   "government", "number", "night",   "point",
    "home",     "water",   "room",     "mother", "area",       "money",  "story",   "fact",
    "month",    "lot",     "right",    "study",  "book",       "eye",    "job",     "word",
    "business", "issue",   "side",     "kind",   "head",       "house",  "service", "friend",
    "father",   "power",   "hour",     "game",   "line",       "end",    "member",  "law"};

uint64_t Fnv1a(std::string_view name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return hash;
}

uint64_t StreamValue(uint64_t hash, int64_t position) {
  uint64_t z = hash + static_cast<uint64_t>(position) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Reads a number of seconds. Leaves *value unchanged if the field is absent.
Status ReadSeconds(const Json& object, const char* field, std::optional<TimeUs>* value) {
  const auto it = object.find(field);
  if (it == object.end() || it->is_null()) return Status::Ok();
  const double seconds = it->is_number() ? it->get<double>() : -1;
  if (!(seconds >= 0) || seconds > kMaxSeconds) {
    return FieldError(field, fmt::format("a number of seconds in [0, {}]", kMaxSeconds));
  }
  *value = std::llround(seconds * 1e6);
  return Status::Ok();
}

// Reads a number of milliseconds above 0.
Status ReadMilliseconds(const Json& object, const char* field, std::optional<TimeUs>* value) {
  const auto it = object.find(field);
  if (it == object.end() || it->is_null()) return Status::Ok();
  const double ms = it->is_number() ? it->get<double>() : 0;
  if (!(ms > 0) || ms > kMaxSeconds * 1e3) {
    return FieldError(
        field, fmt::format("a number of milliseconds above 0, at most {}", kMaxSeconds * 1e3));
  }
  *value = std::max<TimeUs>(1, std::llround(ms * 1e3));
  return Status::Ok();
}

// Reads the deadlines. That of the first token may be in seconds or milliseconds.
Status ReadSlos(const Json& object, WorkloadRequest* request) {
  if (object.contains("slo_ttft_s") && object.contains("slo_ttft_ms")) {
    return FieldError("slo_ttft_ms", "given without slo_ttft_s");
  }
  SKEIN_RETURN_IF_ERROR(ReadSeconds(object, "slo_ttft_s", &request->slo_ttft_us));
  SKEIN_RETURN_IF_ERROR(ReadMilliseconds(object, "slo_ttft_ms", &request->slo_ttft_us));
  return ReadMilliseconds(object, "slo_tpot_ms", &request->slo_tpot_us);
}

Status ReadString(const Json& object, const char* field, std::string* value) {
  const auto it = object.find(field);
  if (it == object.end()) return Status::Ok();
  if (!it->is_string()) return FieldError(field, "a string");
  *value = it->get<std::string>();
  return Status::Ok();
}

bool IsIntegerIn(const Json& json, int64_t low, int64_t high) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(high)) return false;
  return json.get<int64_t>() >= low && json.get<int64_t>() <= high;
}

Status ReadSegments(const Json& json, std::vector<WorkloadSegment>* segments) {
  const Status error = FieldError(
      "segments",
      fmt::format("a list of [stream name, length], 1 to {} tokens in all", kMaxPromptTokens));
  if (!json.is_array()) return error;
  int64_t total = 0;
  for (const Json& segment : json) {
    if (!segment.is_array() || segment.size() != 2 || !segment[0].is_string() ||
        !IsIntegerIn(segment[1], 0, kMaxPromptTokens)) {
      return error;
    }
    total += segment[1].get<int64_t>();
    if (total > kMaxPromptTokens) return error;
    segments->push_back({segment[0].get<std::string>(), segment[1].get<int64_t>()});
  }
  return total > 0 ? Status::Ok() : error;
}

Status ReadTokenIds(const Json& json, std::vector<TokenId>* ids) {
  if (!json.is_array() || json.empty()) {
    return FieldError("prompt_token_ids", "a list of at least one token id");
  }
  for (const Json& id : json) {
    if (!IsIntegerIn(id, 0, INT32_MAX)) {
      return FieldError("prompt_token_ids", "made of integers >= 0, not " + id.dump());
    }
    ids->push_back(id.get<TokenId>());
  }
  return Status::Ok();
}

Status ReadPrompt(const Json& object, WorkloadRequest* request) {
  const auto segments = object.find("segments");
  const auto ids = object.find("prompt_token_ids");
  const auto text = object.find("prompt");
  const auto end = object.end();
  if ((segments != end) + (ids != end) + (text != end) != 1) {
    return FieldError("prompt", "given exactly once: as segments, prompt_token_ids or prompt");
  }
  if (segments != end) return ReadSegments(*segments, &request->segments);
  if (ids != end) return ReadTokenIds(*ids, &request->prompt_token_ids);
  if (!text->is_string() || text->get_ref<const std::string&>().empty()) {
    return FieldError("prompt", "a string that is not empty");
  }
  request->prompt = text->get<std::string>();
  return Status::Ok();
}

}  // namespace

void ExpandSegment(std::string_view stream, int64_t length, const TokenRange& range,
                   std::vector<TokenId>* ids) {
  SKEIN_CHECK(range.min_id >= 0 && range.min_id < range.vocab && length >= 0);
  const uint64_t hash = Fnv1a(stream);
  const uint64_t span = static_cast<uint64_t>(range.vocab - range.min_id);
  for (int64_t i = 0; i < length; ++i) {
    ids->push_back(range.min_id + static_cast<TokenId>(StreamValue(hash, i) % span));
  }
}

void ExpandSegmentAsText(std::string_view stream, int64_t length, std::string* text) {
  const uint64_t hash = Fnv1a(stream);
  for (int64_t i = 0; i < length; ++i) {
    if (!text->empty()) *text += ' ';
    *text += kWords[StreamValue(hash, i) % kWords.size()];
  }
}

std::vector<TokenId> WorkloadRequest::TokenIds(const TokenRange& range) const {
  SKEIN_CHECK(!has_text());
  if (!has_segments()) return prompt_token_ids;
  std::vector<TokenId> ids;
  for (const WorkloadSegment& segment : segments) {
    ExpandSegment(segment.stream, segment.length, range, &ids);
  }
  return ids;
}

Result<WorkloadRequest> ParseWorkloadLine(std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return Status(StatusCode::kInvalidArgument, "is not a JSON object");
  }
  WorkloadRequest request;
  SKEIN_RETURN_IF_ERROR(ReadString(object, "id", &request.id));
  SKEIN_RETURN_IF_ERROR(ReadString(object, "class", &request.request_class));
  SKEIN_RETURN_IF_ERROR(ReadString(object, "prefix_group", &request.user));
  SKEIN_RETURN_IF_ERROR(ReadString(object, "user", &request.user));
  std::optional<TimeUs> arrival_us;
  SKEIN_RETURN_IF_ERROR(ReadSeconds(object, "arrival_s", &arrival_us));
  request.arrival_us = arrival_us.value_or(0);
  SKEIN_RETURN_IF_ERROR(ReadSlos(object, &request));
  if (const auto priority = object.find("priority"); priority != object.end()) {
    if (!IsIntegerIn(*priority, INT32_MIN, INT32_MAX)) {
      return FieldError("priority", "an integer of 32 bits");
    }
    request.priority = priority->get<int32_t>();
  }
  const auto max_tokens = object.find("max_tokens");
  if (max_tokens == object.end() || !IsIntegerIn(*max_tokens, 0, INT32_MAX)) {
    return FieldError("max_tokens", "an integer >= 0");
  }
  request.max_tokens = max_tokens->get<int32_t>();
  SKEIN_RETURN_IF_ERROR(ReadPrompt(object, &request));
  return request;
}

Result<std::vector<WorkloadRequest>> LoadWorkload(const std::string& path, int64_t max_requests) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, "workload " + path + " cannot be opened");
  std::vector<WorkloadRequest> requests;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (max_requests > 0 && static_cast<int64_t>(requests.size()) >= max_requests) break;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto request = ParseWorkloadLine(line);
    if (!request.ok()) {
      return Status(request.status().code(),
                    fmt::format("{}:{}: {}", path, number, request.status().message()),
                    request.status().param());
    }
    requests.push_back(std::move(request).value());
  }
  if (requests.empty()) {
    return Status(StatusCode::kInvalidArgument, "workload " + path + " holds no request");
  }
  return requests;
}

}  // namespace skein
