#include "server/reasoning/answer_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>

#include "server/json/json.h"

namespace skein {
namespace {

struct Split {
  std::string reasoning;
  std::string content;
  std::vector<ToolCall> calls;
};

// Parses the text in the pieces that `cut` takes from its rest.
template <typename Cut>
Split Parse(const AnswerParsing& parsing, std::string_view text, Cut cut) {
  AnswerParser parser(parsing);
  Split split;
  std::vector<ToolCallDelta> deltas;
  const auto take = [&](AnswerPiece piece) {
    split.reasoning += piece.reasoning;
    split.content += piece.content;
    std::ranges::move(piece.calls, std::back_inserter(deltas));
  };
  while (!text.empty()) {
    const size_t size = std::min(text.size(), cut(text));
    take(parser.Push(text.substr(0, size)));
    text.remove_prefix(size);
  }
  take(parser.Finish());
  split.calls = WholeCalls(deltas);
  EXPECT_EQ(std::ssize(split.calls), parser.num_calls());
  return split;
}

// Expects reasoning, content and calls (pairs of name and arguments): for the text as a whole, cut
// in two at every byte, in single bytes, and in random pieces.
void Expect(const AnswerParsing& parsing, std::string_view text, std::string_view reasoning,
            std::string_view content,
            const std::vector<std::pair<std::string, std::string>>& calls = {}) {
  const auto check = [&](const Split& split, const std::string& cuts) {
    EXPECT_EQ(split.reasoning, reasoning) << text << " " << cuts;
    EXPECT_EQ(split.content, content) << text << " " << cuts;
    ASSERT_EQ(split.calls.size(), calls.size()) << text << " " << cuts;
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(split.calls[i].index, static_cast<int32_t>(i));
      EXPECT_EQ(split.calls[i].name, calls[i].first) << text << " " << cuts;
      EXPECT_EQ(split.calls[i].arguments, calls[i].second) << text << " " << cuts;
    }
  };
  for (size_t at = 0; at <= text.size(); ++at) {
    const auto cut = [&](std::string_view rest) {
      return rest.size() == text.size() && at > 0 ? at : rest.size();
    };
    check(Parse(parsing, text, cut), "cut at " + std::to_string(at));
  }
  check(Parse(parsing, text, [](std::string_view) { return size_t{1}; }), "in bytes");
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto cut = [&](std::string_view) { return size_t{1 + random() % 9}; };
    check(Parse(parsing, text, cut), "in pieces of seed " + std::to_string(seed));
  }
}

AnswerParsing ThinkTags(bool in_thoughts = false) {
  return {.style = ReasoningStyle::kThinkTags, .in_thoughts = in_thoughts};
}

AnswerParsing Harmony(bool has_tools = false) {
  AnswerParsing parsing = {.style = ReasoningStyle::kHarmony};
  if (has_tools) parsing.tools = ToolParsing{ToolStyle::kHarmony, {"add", "now"}};
  return parsing;
}

TEST(AnswerParser, ThinkTags) {
  Expect(ThinkTags(), "<think>\nI add.\n\n  Twice.\n</think>\n\nIt is 4.\n", "I add.\n\n  Twice.",
         "It is 4.\n");
  Expect(ThinkTags(), "\n <think>a</think>b", "a", "b");
  Expect(ThinkTags(), "<think></think>b", "", "b");
  Expect(ThinkTags(), "<think>\n\n</think>\n\nb", "", "b");
  // Texts that only look like a thought's marks.
  Expect(ThinkTags(), "<think>a < b, </thin, <think> </thinks></think>c < d",
         "a < b, </thin, <think> </thinks>", "c < d");
  Expect(ThinkTags(), "<thin air", "", "<thin air");
  // Text without tags, and tags behind it, are content.
  Expect(ThinkTags(), "\n Hello. <think>a</think>\n", "", "\n Hello. <think>a</think>\n");
  Expect(ThinkTags(), "a</think>b", "", "a</think>b");
  Expect(ThinkTags(), "<think>a</think>b<think>c</think>", "a", "b<think>c</think>");
  Expect(ThinkTags(), "", "", "");
  Expect(ThinkTags(), " \n", "", " \n");
}

TEST(AnswerParser, AThoughtThatThePromptBegins) {
  Expect(ThinkTags(true), "I add.\n</think>\n\nIt is 4.", "I add.", "It is 4.");
  Expect(ThinkTags(true), "\n<think>\nI add.</think>It is 4.", "I add.", "It is 4.");
  Expect(ThinkTags(true), "</think>It is 4.", "", "It is 4.");
  Expect(ThinkTags(true), "<thin air</think>It is 4.", "<thin air", "It is 4.");
}

TEST(AnswerParser, AnAnswerThatEndsInAThought) {
  Expect(ThinkTags(), "<think>\nI add. ", "I add.", "");
  Expect(ThinkTags(), "<think>I add.</thi", "I add.</thi", "");
  Expect(ThinkTags(), "<thi", "", "<thi");
  Expect(ThinkTags(), "<think>I add.</think>\n", "I add.", "");
  Expect(ThinkTags(true), "I add", "I add", "");
  Expect(ThinkTags(true), "\n<thi", "<thi", "");
}

TEST(AnswerParser, CallsBehindAThought) {
  AnswerParsing parsing = ThinkTags(true);
  parsing.tools = ToolParsing{ToolStyle::kHermes, {"add"}};
  Expect(parsing,
         "Shall I <tool_call>?\n</think>\n\nI add.\n<tool_call>\n{\"name\": \"add\", "
         "\"arguments\": {\"a\": 1}}\n</tool_call>",
         "Shall I <tool_call>?", "I add.", {{"add", "{\"a\": 1}"}});
  // A call that must be the whole answer may follow a thought.
  parsing.tools->style = ToolStyle::kJson;
  Expect(parsing, "I add.</think>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}", "I add.", "",
         {{"add", "{\"a\": 1}"}});
}

TEST(AnswerParser, ReasoningIsLeftOutOrLeftInTheContent) {
  AnswerParsing parsing = ThinkTags();
  parsing.includes = false;
  Expect(parsing, "<think>a</think>b", "", "b");
  parsing.separates = false;
  Expect(parsing, "<think>a</think>\nb", "", "<think>a</think>\nb");
  AnswerParsing harmony = Harmony();
  harmony.separates = false;
  Expect(harmony,
         "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final"
         "<|message|>b<|return|>",
         "", "a\nb");
  Expect({}, "<think>a</think>b", "", "<think>a</think>b");
}

TEST(AnswerParser, Harmony) {
  const std::string analysis = "<|channel|>analysis<|message|>They greet. <|end|>";
  const std::string final = "<|start|>assistant<|channel|>final<|message|>Hello < you!\n";
  // The last mark ends the text, so that it is usually missing.
  for (const char* end : {"", "<|return|>", "<|end|>"}) {
    Expect(Harmony(), analysis + final + end, "They greet. ", "Hello < you!\n");
  }
  Expect(Harmony(), "<|channel|>final<|message|>Hello", "", "Hello");
  Expect(Harmony(), "<|channel|>analysis<|message|>They gr", "They gr", "");
  Expect(Harmony(), "<|channel|>analysis<|message|>They <|e", "They <|e", "");
  Expect(Harmony(), analysis + "<|start|>assistant<|channel|>fin", "They greet. ", "");
  // Several messages of one kind.
  Expect(Harmony(), analysis + "<|start|>assistant" + analysis + final,
         "They greet. \nThey greet. ", "Hello < you!\n");
  // A preamble is content.
  Expect(Harmony(),
         analysis + "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>" + final,
         "They greet. ", "I look.\nHello < you!\n");
  // Without marks all is content.
  Expect(Harmony(), " Hello <|you|>", "", " Hello <|you|>");
  Expect(Harmony(), "to the point", "", "to the point");
  Expect(Harmony(), "<|chan", "", "<|chan");
  // Headers that are written anew, or without the mark before them.
  Expect(Harmony(),
         "<|channel|>commentary<|channel|>analysis<|message|>a<|channel|>final"
         "<|message|>b",
         "a", "b");
  Expect(Harmony(),
         "<|start|>assistant<|channel|>analysis<|message|>a<|start|>assistant"
         "<|channel|>final <|constrain|>json<|message|>{}<|return|>",
         "a", "{}");
}

TEST(AnswerParser, CallsInHarmony) {
  const std::string analysis = "<|channel|>analysis<|message|>I add.<|end|><|start|>assistant";
  const std::string call =
      "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}";
  for (const char* end : {"", "<|call|>"}) {
    Expect(Harmony(true), analysis + call + end, "I add.", "", {{"add", "{\"a\": 1}"}});
  }
  // The recipient may stand before the channel.
  Expect(Harmony(true),
         analysis + " to=functions.add<|channel|>commentary json<|message|>{\"a\": 1}<|call|>",
         "I add.", "", {{"add", "{\"a\": 1}"}});
  Expect(Harmony(true), " to=functions.now<|channel|>analysis<|message|><|call|>", "", "",
         {{"now", "{}"}});
  Expect(Harmony(true), "<|channel|>commentary<|message|>I add.<|end|><|start|>assistant" + call,
         "", "I add.", {{"add", "{\"a\": 1}"}});
  Expect(Harmony(true), call + "<|call|><|start|>assistant" + call, "", "",
         {{"add", "{\"a\": 1}"}, {"add", "{\"a\": 1}"}});
  // Arguments that the budget cuts short are passed on up to the cut.
  Expect(Harmony(true), call.substr(0, call.size() - 3), "", "", {{"add", "{\"a\":"}});
  // Messages to the model's own tools are as their channel says.
  Expect(Harmony(true), "<|channel|>analysis to=python code<|message|>2 + 2<|call|>", "2 + 2", "");
  // Without tools no message is a call.
  Expect(Harmony(false), analysis + call, "I add.", "{\"a\": 1}");
  // Calls of another family are looked for in the content.
  AnswerParsing other = Harmony();
  other.tools = ToolParsing{ToolStyle::kHermes, {"add"}};
  Expect(other, analysis + "<|channel|>final<|message|><tool_call>{\"name\": \"add\"}</tool_call>",
         "I add.", "", {{"add", "{}"}});
}

TEST(AnswerParser, ReasoningArrivesWhileItIsWritten) {
  for (const bool harmony : {false, true}) {
    AnswerParser parser(harmony ? Harmony() : ThinkTags());
    (void)parser.Push(harmony ? "<|channel|>analysis<|message|>" : "<think>");
    EXPECT_EQ(parser.Push("I think").reasoning, "I think");
    EXPECT_EQ(parser.Push(" of it").reasoning, " of it");
  }
}

}  // namespace
}  // namespace skein
