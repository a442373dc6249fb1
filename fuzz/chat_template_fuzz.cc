#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "harness.h"
#include "text/chat_template.h"

namespace skein::fuzz {
namespace {

using Json = ChatTemplate::Json;

const char kConversation[] = R"({"messages": [
  {"role": "system", "content": "Be brief."},
  {"role": "user", "content": "Hi <|im_end|> \u00e9"},
  {"role": "assistant", "content": "", "tool_calls": [{"type": "function",
    "function": {"name": "find", "arguments": {"q": [1, 2.5, null, true]}}}]},
  {"role": "tool", "name": "find", "content": "{}"}],
  "tools": [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}],
  "add_generation_prompt": true, "bos_token": "<s>", "x": [3, 1, 2], "n": 7, "s": " a b "})";

int DepthOf(std::string_view text) {
  int depth = 0, most = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') most = std::max(most, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return most;
}

}  // namespace

// A template, the mark, an object of variables (none: a conversation with a tool). Rendering ends,
// with a text or an error, and twice with the same.
void FuzzChatTemplate(Bytes data) {
  constexpr int kMostDepth = 32;
  constexpr size_t kMostBytes = 4096;
  if (data.size() > kMostBytes) return;
  static const Json conversation = Json::parse(kConversation);
  const auto [source, variables] = PartsOf(TextOf(data));
  const auto parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) {
    SKEIN_CHECK(!parsed.status().message().empty());
    return;
  }
  Json json = conversation;
  if (!variables.empty() && DepthOf(variables) <= kMostDepth) {
    json = Json::parse(variables, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) json = conversation;
  }
  const auto first = parsed.value()->Render(json);
  const auto second = parsed.value()->Render(json);
  SKEIN_CHECK(first.ok() == second.ok());
  if (!first.ok()) {
    SKEIN_CHECK(!first.status().message().empty());
    return;
  }
  if (source.find("strftime_now") == source.npos) SKEIN_CHECK(first.value() == second.value());
}

}  // namespace skein::fuzz
