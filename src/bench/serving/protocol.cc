#include "bench/serving/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/json/json.h"

namespace skein {
namespace {

constexpr size_t kMaxLineBytes = size_t{16} << 20;
constexpr size_t kMaxErrorBytes = 200;

// The member `name` of the object if it exists, otherwise null.
const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

bool HasText(const Json& json) {
  return json.is_string() && !json.get_ref<const std::string&>().empty();
}

std::optional<int64_t> Integer(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  return json.get<int64_t>();
}

std::string ErrorMessage(const Json& body) {
  const Json& error = Member(body, "error");
  const Json& message = error.is_object() ? Member(error, "message") : Member(body, "message");
  if (message.is_string()) return message.get<std::string>();
  return error.is_string() ? error.get<std::string>() : "";
}

}  // namespace

Status CheckBenchRequest(const WorkloadRequest& request, const BenchRequestFormat& format) {
  if (format.endpoint == BenchEndpoint::kChat && !request.has_text() && !request.has_segments()) {
    return Status(StatusCode::kInvalidArgument,
                  "endpoint chat takes text: a workload of prompt_token_ids needs completions",
                  "endpoint");
  }
  return Status::Ok();
}

std::string MakeBenchRequestBody(const WorkloadRequest& request, int64_t index,
                                 const BenchRequestFormat& format) {
  Json body;
  body["model"] = format.model;
  std::string text = request.prompt;
  if (format.endpoint == BenchEndpoint::kChat) {
    for (const WorkloadSegment& segment : request.segments) {
      ExpandSegmentAsText(segment.stream, segment.length, &text);
    }
    body["messages"] = Json::array({{{"role", "user"}, {"content", std::move(text)}}});
  } else if (request.has_text()) {
    body["prompt"] = std::move(text);
  } else {
    body["prompt"] = request.TokenIds(format.tokens);
  }
  body["max_tokens"] = request.max_tokens;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  // Asks for a piece for every token, even for a token without text of its own (half a character,
  // or an id that a random model draws beyond its tokenizer). Otherwise the token's time would be
  // unknown.
  body["return_token_ids"] = true;
  if (format.ignore_eos) body["ignore_eos"] = true;
  if (format.temperature) body["temperature"] = *format.temperature;
  if (format.seed) body["seed"] = *format.seed + index;
  if (request.slo_ttft_us) body["slo_ttft_ms"] = static_cast<double>(*request.slo_ttft_us) / 1e3;
  if (request.slo_tpot_us) body["slo_tpot_ms"] = static_cast<double>(*request.slo_tpot_us) / 1e3;
  if (request.priority != 0) body["priority"] = request.priority;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void BenchAnswerReader::Feed(std::string_view bytes, TimeUs elapsed_us) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (end == std::string_view::npos) {
      if (buffer_.size() + part.size() > kMaxLineBytes) {
        error_ = "a line of the stream is too long";
        return;
      }
      buffer_ += part;
      return;
    }
    if (buffer_.empty()) {
      ReadLine(part, elapsed_us);
    } else {
      buffer_ += part;
      ReadLine(buffer_, elapsed_us);
      buffer_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void BenchAnswerReader::ReadLine(std::string_view line, TimeUs elapsed_us) {
  // Servers of this API write each event as one data line. Comments and other fields are ignored.
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return;
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line == "[DONE]") {
    ended_ = true;
  } else {
    ReadEvent(line, elapsed_us);
  }
}

void BenchAnswerReader::ReadEvent(std::string_view data, TimeUs elapsed_us) {
  const Json event = Json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) {
    error_ = "an event of the stream is not a JSON object";
    return;
  }
  if (!Member(event, "error").is_null()) {
    error_ = "error in the stream: " + ErrorMessage(event);
    return;
  }
  const Json& usage = Member(event, "usage");
  if (usage.is_object()) {
    prompt_tokens_ = Integer(Member(usage, "prompt_tokens"));
    output_tokens_ = Integer(Member(usage, "completion_tokens"));
    const Json& details = Member(usage, "prompt_tokens_details");
    cached_tokens_ = Integer(Member(details, "cached_tokens")).value_or(0);
  }
  const Json& choices = Member(event, "choices");
  if (!choices.is_array() || choices.empty()) return;
  last_piece_us_ = elapsed_us;
  const Json& choice = choices[0];
  const bool ends = Member(choice, "finish_reason").is_string();
  const Json& delta = Member(choice, "delta");
  const bool has_text = HasText(Member(choice, "text")) || HasText(Member(delta, "content")) ||
                        HasText(Member(delta, "reasoning_content")) ||
                        !Member(delta, "tool_calls").is_null();
  const bool textless_completion = Member(choice, "text").is_string() && !ends;
  if (has_text || textless_completion || (ends && token_times_us_.empty())) {
    token_times_us_.push_back(elapsed_us);
  }
  ended_ = ended_ || ends;
}

void BenchAnswerReader::Finish(LoadRecord* record) {
  if (error_.empty() && !ended_) error_ = "the stream ended before the answer did";
  record->ok = error_.empty();
  record->error = error_;
  record->prompt_tokens = prompt_tokens_.value_or(0);
  record->cached_tokens = cached_tokens_;
  record->output_tokens = output_tokens_.value_or(static_cast<int64_t>(token_times_us_.size()));
  record->e2el_us = last_piece_us_;
  if (token_times_us_.empty()) return;
  record->ttft_us = token_times_us_.front();
  for (size_t i = 1; i < token_times_us_.size(); ++i) {
    record->itl_us.push_back(token_times_us_[i] - token_times_us_[i - 1]);
  }
}

std::string DescribeHttpError(int status, std::string_view body) {
  std::string message = ErrorMessage(Json::parse(body, nullptr, /*allow_exceptions=*/false));
  if (message.empty()) message = std::string(body);
  message = message.substr(0, kMaxErrorBytes);
  std::replace(message.begin(), message.end(), '\n', ' ');
  return fmt::format("HTTP {}: {}", status, message);
}

}  // namespace skein
