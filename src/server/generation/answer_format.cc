#include "server/generation/answer_format.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "server/json/api_error.h"

namespace skein {

HttpResponse AnswerFormat::StreamHead() const {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");
  return head;
}

HttpResponse AnswerFormat::Failure(const Status& status) const { return ErrorResponse(status); }

std::string AnswerFormat::FailureEvents(const Status& status) const {
  return Event(ErrorBody(status)) + "data: [DONE]\n\n";
}

AnswerPiece TakePiece(ChoiceState* state) {
  std::string text = std::exchange(state->text, {});
  if (!state->parser) return {.content = std::move(text)};
  AnswerPiece piece = state->parser->Push(text);
  if (state->finish) {
    AnswerPiece rest = state->parser->Finish();
    piece.reasoning += rest.reasoning;
    piece.content += rest.content;
    std::ranges::move(rest.calls, std::back_inserter(piece.calls));
  }
  return piece;
}

bool HasCalls(const ChoiceState& state) { return state.parser && state.parser->num_calls() > 0; }

std::string Event(const Json& json, std::string_view name) {
  const std::string first = name.empty() ? "" : fmt::format("event: {}\n", name);
  return first + "data: " + DumpJson(json) + "\n\n";
}

Json UsageJson(const Usage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  if (usage.reasoning_tokens) {
    json["completion_tokens_details"]["reasoning_tokens"] = *usage.reasoning_tokens;
  }
  return json;
}

Json FinishReasonJson(const ChoiceState& state) {
  if (!state.finish) return nullptr;
  if (*state.finish == FinishReason::kLength) return "length";
  return HasCalls(state) ? "tool_calls" : "stop";
}

Json StopReasonJson(const StopReason& reason) {
  if (const auto* text = std::get_if<std::string>(&reason)) return *text;
  if (const auto* id = std::get_if<TokenId>(&reason)) return *id;
  return nullptr;
}

std::string MakeAnswerId(const char* prefix, uint64_t random) {
  return fmt::format("{}-{:016x}", prefix, random);
}

int64_t UnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace skein
