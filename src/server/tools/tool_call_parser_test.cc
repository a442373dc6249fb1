#include "server/tools/tool_call_parser.h"

#include <gtest/gtest.h>

#include <random>

#include "server/json/json.h"

namespace skein {
namespace {

struct Parsed {
  std::string content;
  std::vector<ToolCall> calls;
};

// Parses the text in pieces of at most `piece_max` bytes; `*num_pieces` counts pieces of arguments.
Parsed Parse(ToolStyle style, std::string_view text, size_t piece_max, int* num_pieces = nullptr) {
  ToolCallParser parser(style, {"add", "find"});
  std::mt19937 random(static_cast<unsigned>(piece_max));
  Parsed parsed;
  std::vector<ToolCallDelta> deltas;
  const auto take = [&](ToolCallParser::Piece piece) {
    parsed.content += piece.content;
    for (ToolCallDelta& delta : piece.calls) deltas.push_back(std::move(delta));
  };
  while (!text.empty()) {
    const size_t size = std::min<size_t>(text.size(), 1 + random() % piece_max);
    take(parser.Push(text.substr(0, size)));
    text.remove_prefix(size);
  }
  take(parser.Finish());
  for (size_t i = 1; i < deltas.size(); ++i) EXPECT_GE(deltas[i].index, deltas[i - 1].index);
  if (num_pieces != nullptr) *num_pieces = static_cast<int>(deltas.size());
  parsed.calls = WholeCalls(deltas);
  EXPECT_EQ(std::ssize(parsed.calls), parser.num_calls());
  return parsed;
}

// Expects content and calls (pairs of name and arguments), wherever the text is cut into pieces.
void Expect(ToolStyle style, std::string_view text, std::string_view content,
            const std::vector<std::pair<std::string, Json>>& calls) {
  for (const size_t piece_max : {1, 2, 3, 7, 1000}) {
    const Parsed parsed = Parse(style, text, piece_max);
    EXPECT_EQ(parsed.content, content) << text << " in pieces of " << piece_max;
    ASSERT_EQ(parsed.calls.size(), calls.size()) << text << " in pieces of " << piece_max;
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(parsed.calls[i].index, static_cast<int32_t>(i));
      EXPECT_EQ(parsed.calls[i].name, calls[i].first);
      EXPECT_EQ(ParseJson(parsed.calls[i].arguments), calls[i].second) << parsed.calls[i].arguments;
    }
  }
}

TEST(ToolCallParser, Hermes) {
  constexpr auto kStyle = ToolStyle::kHermes;
  Expect(kStyle, "Just words, and <tool> too.\n", "Just words, and <tool> too.\n", {});
  Expect(kStyle, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": [1, {}]}}\n</tool_call>",
         "", {{"add", {{"a", {1, Json::object()}}}}});
  Expect(
      kStyle,
      "I look.\n<tool_call>{\"name\": \"find\", \"arguments\": {\"q\": \"}\\\" </tool_call>\"}}"
      "</tool_call>\n<tool_call>\n{\"arguments\": {\"b\": 2}, \"name\": \"add\"}\n</tool_call>\n",
      "I look.", {{"find", {{"q", "}\" </tool_call>"}}}, {"add", {{"b", 2}}}});
  // Calls without the closing mark, without arguments, in the form of OpenAI, and with arguments as
  // a string.
  Expect(kStyle, "<tool_call>{\"name\": \"add\"}", "", {{"add", Json::object()}});
  Expect(kStyle,
         "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"add\", \"arguments\": "
         "\"{\\\"a\\\": 1}\"}}</tool_call> Done.",
         " Done.", {{"add", {{"a", 1}}}});
  // Texts that only look like calls.
  Expect(kStyle, "<tool_call>add(1, 2)</tool_call>", "<tool_call>add(1, 2)</tool_call>", {});
  Expect(kStyle, "Use <tool_call", "Use <tool_call", {});
  Expect(kStyle, "<tool_call>{\"a\": 1}</tool_call>", "<tool_call>{\"a\": 1}</tool_call>", {});
  Expect(kStyle, "<tool_call>{\"name\": \"ad", "<tool_call>{\"name\": \"ad", {});
}

TEST(ToolCallParser, SmolLm) {
  Expect(ToolStyle::kSmolLm,
         "<tool_call>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"find\", "
         "\"arguments\": {}}]</tool_call>",
         "", {{"add", {{"a", 1}}}, {"find", Json::object()}});
  Expect(ToolStyle::kSmolLm, "<tool_call>[]</tool_call>Nothing.", "Nothing.", {});
}

TEST(ToolCallParser, Llama3) {
  constexpr auto kStyle = ToolStyle::kLlama3;
  Expect(kStyle, "{\"name\": \"add\", \"parameters\": {\"a\": 1}}", "", {{"add", {{"a", 1}}}});
  Expect(kStyle,
         "\n<|python_tag|>{\"name\": \"add\", \"parameters\": {\"a\": 1}}; {\"name\": \"find\", "
         "\"parameters\": {\"q\": null}}",
         "", {{"add", {{"a", 1}}}, {"find", {{"q", nullptr}}}});
  // JSON that is no call of one of the functions.
  Expect(kStyle, "{\"name\": \"Maria\", \"age\": 3}", "{\"name\": \"Maria\", \"age\": 3}", {});
  Expect(kStyle, "{\"age\": 3}", "{\"age\": 3}", {});
  Expect(kStyle, "See {\"name\": \"add\", \"parameters\": {}}",
         "See {\"name\": \"add\", \"parameters\": {}}", {});
}

TEST(ToolCallParser, Mistral) {
  constexpr auto kStyle = ToolStyle::kMistral;
  Expect(kStyle,
         "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"find\", "
         "\"arguments\": {\"q\": \"x\"}}]",
         "", {{"add", {{"a", 1}}}, {"find", {{"q", "x"}}}});
  Expect(kStyle, "[TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]find[CALL_ID]123[ARGS]{\"q\": {}}", "",
         {{"add", {{"a", 1}}}, {"find", {{"q", Json::object()}}}});
  Expect(kStyle, "[TOOL_CALLS]multiply[ARGS]{\"a\": 1}", "[TOOL_CALLS]multiply[ARGS]{\"a\": 1}",
         {});
}

TEST(ToolCallParser, Json) {
  constexpr auto kStyle = ToolStyle::kJson;
  Expect(kStyle, " [{\"name\": \"add\", \"arguments\": {\"a\": 1}}]", "", {{"add", {{"a", 1}}}});
  Expect(kStyle, "[1, 2] are numbers", "[1, 2] are numbers", {});
  Expect(kStyle, "   ", "   ", {});
  // In a block of code, as Gemma writes it.
  const std::string add = "{\"name\": \"add\", \"arguments\": {\"a\": 1}}";
  Expect(kStyle, "I add them.\n```json\n" + add + "\n```\n", "I add them.", {{"add", {{"a", 1}}}});
  Expect(kStyle, "```json\n[" + add + ",\n {\"name\": \"find\"}]\n``` Done.", " Done.",
         {{"add", {{"a", 1}}}, {"find", Json::object()}});
  for (const std::string block :
       {"```json\n{\"age\": 3}\n```", "```json\n[]\n```", "```python\nadd(1)\n```",
        "```json\n{\"name\": \"multiply\", \"arguments\": {}}\n```"}) {
    Expect(kStyle, block, block, {});
  }
}

TEST(ToolCallParser, ArgumentsArriveWhileTheyAreWritten) {
  int num_pieces = 0;
  const Parsed parsed = Parse(
      ToolStyle::kHermes,
      "<tool_call>{\"name\": \"add\", \"arguments\": {\"text\": \"a long text of many words\"}}", 4,
      &num_pieces);
  EXPECT_EQ(parsed.calls.at(0).arguments, "{\"text\": \"a long text of many words\"}");
  EXPECT_GT(num_pieces, 8);
  // Arguments that the token budget cuts short are passed on up to the cut.
  const Parsed cut = Parse(ToolStyle::kHermes,
                           "<tool_call>{\"name\": \"add\", \"arguments\": {\"text\": \"a lo", 4);
  EXPECT_EQ(cut.calls.at(0).arguments, "{\"text\": \"a lo");
  EXPECT_EQ(cut.content, "");
}

}  // namespace
}  // namespace skein
