#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "harness.h"
#include "server/tools/tool_call_parser.h"

namespace skein::fuzz {
namespace {

constexpr std::array kStyles = {ToolStyle::kHermes, ToolStyle::kSmolLm, ToolStyle::kLlama3,
                                ToolStyle::kMistral, ToolStyle::kJson};

struct Parsed {
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
  bool operator==(const Parsed&) const = default;

  void Add(const ToolCallParser::Piece& piece) {
    content += piece.content;
    for (const ToolCallDelta& delta : piece.calls) {
      SKEIN_CHECK(delta.index >= 0 && delta.index <= std::ssize(calls));
      if (delta.index == std::ssize(calls)) calls.emplace_back();
      calls[static_cast<size_t>(delta.index)].first += delta.name;
      calls[static_cast<size_t>(delta.index)].second += delta.arguments;
    }
  }
};

Parsed Parse(ToolStyle style, std::string_view text, size_t piece_bytes) {
  ToolCallParser parser(style, {"find", "get_weather"});
  Parsed parsed;
  for (size_t at = 0; at < text.size(); at += piece_bytes) {
    parsed.Add(parser.Push(text.substr(at, piece_bytes)));
  }
  parsed.Add(parser.Finish());
  SKEIN_CHECK(parser.num_calls() == std::ssize(parsed.calls));
  return parsed;
}

}  // namespace

// The style, then the text of an answer: the pieces in which it arrives change nothing.
void FuzzToolCalls(Bytes data) {
  if (data.size() < 2) return;
  const ToolStyle style = kStyles[data[0] % kStyles.size()];
  const std::string_view text = TextOf(data.subspan(2));
  const Parsed whole = Parse(style, text, text.size() + 1);
  SKEIN_CHECK(Parse(style, text, 1 + data[1] % 16) == whole);
}

}  // namespace skein::fuzz
