#include "server/generation/answer_format.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>

namespace skein {

Json UsageJson(const Usage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  return json;
}

Json FinishReasonJson(const std::optional<FinishReason>& finish) {
  if (!finish) return nullptr;
  return *finish == FinishReason::kLength ? "length" : "stop";
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
