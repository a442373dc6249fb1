#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/reasoning/answer_piece.h"
#include "server/reasoning/harmony_parser.h"
#include "server/reasoning/reasoning_style.h"
#include "server/reasoning/think_tag_parser.h"
#include "server/tools/tool_call_parser.h"
#include "server/tools/tool_style.h"

namespace skein {

// How tool calls are found in an answer.
struct ToolParsing {
  ToolStyle style = ToolStyle::kHermes;
  std::vector<std::string> names;  // of the functions that may be called
};

// How an answer's text is split.
struct AnswerParsing {
  ReasoningStyle style = ReasoningStyle::kNone;
  bool in_thoughts = false;          // the prompt ends inside a thought (kThinkTags)
  bool separates = true;             // reasoning is told apart from content; if not, it is content
  bool includes = true;              // reasoning that is told apart is part of the answer
  std::optional<ToolParsing> tools;  // nullopt: the answer has no calls
  bool constrains_calls = false;     // a grammar constrains calls, with the marks around them

  // Whether all text is content.
  bool IsPlain() const { return style == ReasoningStyle::kNone && !tools; }
};

// Splits the text of an answer into reasoning, content and tool calls, as the text arrives. Calls
// are looked for in the content alone. One thread.
class AnswerParser {
 public:
  explicit AnswerParser(const AnswerParsing& parsing);

  // Returns what is certain so far. The rest is kept until more text comes.
  AnswerPiece Push(std::string_view text);
  // Ends the answer: returns the rest.
  AnswerPiece Finish();
  int32_t num_calls() const;

 private:
  // Finds the calls in the piece's content.
  AnswerPiece WithCalls(AnswerPiece piece, bool finish);

  const bool includes_;
  std::optional<ThinkTagParser> thoughts_;
  std::optional<HarmonyParser> harmony_;
  std::optional<ToolCallParser> tools_;
};

}  // namespace skein
