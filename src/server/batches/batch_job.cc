#include "server/batches/batch_job.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "server/json/field_reader.h"

namespace skein {
namespace {

constexpr std::array<std::string_view, 7> kEndpoints = {
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses",
    "/v1/decisions",        "/v1/systemone",   "/v1/rerank"};
constexpr size_t kLineErrorsMax = 20;
constexpr size_t kCustomIdBytesMax = 512;

std::string_view WithoutEnd(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return line;
}

// Checks one line of the input; returns its custom_id.
Result<std::string> CheckLine(std::string_view text, const std::string& endpoint) {
  std::string why;
  const std::optional<Json> json = ParseJson(text, &why);
  if (!json) return Status(StatusCode::kInvalidArgument, "the line is no JSON: " + why);
  if (!json->is_object()) {
    return Status(StatusCode::kInvalidArgument, "the line must be a JSON object");
  }
  FieldReader reader(*json);
  const std::string custom_id = reader.String("custom_id").value_or("");
  if (custom_id.empty() || custom_id.size() > kCustomIdBytesMax) {
    reader.Refuse("custom_id",
                  fmt::format("custom_id must be a text of 1 to {} bytes", kCustomIdBytesMax));
  }
  if (reader.String("method").value_or("") != "POST") {
    reader.Refuse("method", "method must be \"POST\"");
  }
  const std::string url = reader.String("url").value_or("");
  if (url != endpoint) {
    reader.Refuse("url", fmt::format("url must be the batch's endpoint {}, got \"{}\"", endpoint,
                                     url.substr(0, kCustomIdBytesMax)));
  }
  if (reader.Object("body") == nullptr) reader.Refuse("body", "body must be an object");
  SKEIN_RETURN_IF_ERROR(reader.status());
  return custom_id;
}

}  // namespace

bool IsBatchEndpoint(std::string_view endpoint) {
  return std::ranges::find(kEndpoints, endpoint) != kEndpoints.end();
}

std::string BatchEndpoints() { return fmt::format("{}", fmt::join(kEndpoints, ", ")); }

std::vector<BatchLineError> BatchJob::ReadInput(std::string input, const std::string& endpoint) {
  input_ = std::move(input);
  std::vector<BatchLineError> errors;
  const auto add = [&](size_t line, const std::string& message, const std::string& param) {
    if (errors.size() < kLineErrorsMax) errors.push_back({line, message, param});
  };
  std::unordered_set<std::string> ids;
  std::string_view rest = input_;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view text = WithoutEnd(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (text.empty()) continue;
    if (lines_.size() == kBatchLinesMax) {
      add(0, fmt::format("the file has more than {} lines", kBatchLinesMax), "");
      break;
    }
    Result<std::string> id = CheckLine(text, endpoint);
    if (!id.ok()) {
      add(number, id.status().message(), id.status().param());
    } else if (!ids.insert(*id).second) {
      add(number, fmt::format("custom_id \"{}\" appears twice", *id), "custom_id");
    }
    lines_.push_back({id.ok() ? std::move(id).value() : std::string(), text});
  }
  if (lines_.empty()) add(0, "the file holds no requests", "");
  return errors;
}

// Marks the lines whose results the file `path` holds. Reading stops at the first incomplete
// result.
Status BatchJob::ReadResults(const std::string& path, std::vector<bool>* done, int64_t* num_results,
                             LineFile* file) {
  std::unordered_map<std::string_view, size_t> line_of;
  for (size_t i = 0; i < lines_.size(); ++i) line_of.emplace(lines_[i].custom_id, i);
  std::string text;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    SKEIN_ASSIGN_OR_RETURN(text, ReadWhole(path));
  }
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto json = ParseJson(std::string_view(text).substr(begin, end - begin));
    if (!json || !json->is_object()) break;
    const auto found = line_of.find(FieldReader(*json).String("custom_id").value_or(""));
    if (found == line_of.end() || (*done)[found->second]) break;
    (*done)[found->second] = true;
    ++*num_results;
  }
  SKEIN_ASSIGN_OR_RETURN(*file, LineFile::Open(path, static_cast<int64_t>(begin)));
  return Status::Ok();
}

Status BatchJob::OpenResults(const std::string& output_path, const std::string& error_path) {
  std::vector<bool> done(lines_.size());
  SKEIN_RETURN_IF_ERROR(ReadResults(output_path, &done, &num_completed_, &output_));
  SKEIN_RETURN_IF_ERROR(ReadResults(error_path, &done, &num_failed_, &errors_));
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (!done[i]) pending_.push_back(i);
  }
  return Status::Ok();
}

size_t BatchJob::TakeNext() {
  const size_t line = pending_.front();
  pending_.pop_front();
  return line;
}

Result<std::string> BatchJob::BodyOf(size_t line) const {
  const std::optional<Json> json = ParseJson(lines_[line].text);
  Json body = json->at("body");
  FieldReader reader(body);
  const bool streams = reader.Bool("stream").value_or(false);
  SKEIN_RETURN_IF_ERROR(reader.status());
  if (streams) {
    return Status(StatusCode::kInvalidArgument, "stream must not be true in a batch", "stream");
  }
  if (const Json* format = reader.Find("encoding_format"); format && *format == "bytes_only") {
    return Status(StatusCode::kInvalidArgument,
                  "encoding_format must be \"float\" or \"base64\" in a batch, got \"bytes_only\"",
                  "encoding_format");
  }
  for (const char* field :
       {"stream", "stream_options", "slo_ttft_ms", "slo_tpot_ms", "timeout_ms", "background"}) {
    body.erase(field);
  }
  body["priority"] = std::numeric_limits<int32_t>::max();
  return DumpJson(body);
}

Status BatchJob::AddResult(size_t line, const HttpResponse& response) {
  const bool ok = response.status == 200;
  std::string body = response.body;
  std::ranges::replace(body, '\n', ' ');  // JSON strings hold no raw newline
  const std::string text = fmt::format(
      "{{\"id\":\"{}\",\"custom_id\":{},\"response\":{{\"status_code\":{},\"request_id\":\"{}\","
      "\"body\":{}}},\"error\":null}}\n",
      RandomId("batch_req_"), DumpJson(lines_[line].custom_id), response.status, RandomId("req_"),
      body);
  SKEIN_RETURN_IF_ERROR((ok ? output_ : errors_).Append(text));
  ++(ok ? num_completed_ : num_failed_);
  return Status::Ok();
}

Status BatchJob::Sync() {
  SKEIN_RETURN_IF_ERROR(output_.Sync());
  return errors_.Sync();
}

}  // namespace skein
