#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/tools/call_scanner.h"
#include "server/tools/tool_style.h"

namespace skein {

// Splits the text of an answer into content and tool calls, as the text arrives:
//
//   I look it up. <tool_call> {"name": "find", "arguments": {"q": 1}} </tool_call>
//   |- content -|             |-------------- one call -------------|
//
// In styles without marks, an answer is calls if it begins with one of the request's functions. In
// kJson they may also stand in a block of code (```json). A text that only looks like a call is
// content. One thread.
class ToolCallParser {
 public:
  struct Piece {
    std::string content;
    std::vector<ToolCallDelta> calls;
  };

  ToolCallParser(ToolStyle style, std::vector<std::string> names);

  // Returns the content and calls that are certain so far. The rest is kept until more text comes.
  Piece Push(std::string_view text);
  // Ends the answer: returns the rest.
  Piece Finish();
  int32_t num_calls() const { return num_calls_; }

 private:
  enum class Mode { kText, kCalls };

  // Each of these reads from buffer_[pos_] and returns false if it needs more text.
  bool ReadText(Piece* piece);
  bool ReadBeginning();
  bool ReadBetweenCalls(Piece* piece);
  bool ReadCall(Piece* piece);
  bool ReadName(Piece* piece);
  void BeginCalls(size_t end_of_mark);
  void AddContent(std::string_view text, Piece* piece);
  void GiveUp(Piece* piece);

  const ToolStyle style_;
  const ToolMarks marks_;
  const std::vector<std::string> names_;
  const bool bare_;  // calls at the answer's beginning need no mark
  Mode mode_ = Mode::kText;
  bool at_start_ = true;    // the answer has only white space so far
  std::string buffer_;      // text that is neither content nor call yet
  size_t pos_ = 0;          // in buffer_
  size_t calls_begin_ = 0;  // in buffer_: from here on all is content if no call follows
  std::string space_;       // white space after the content so far
  std::optional<CallScanner> scanner_;
  int32_t num_calls_ = 0;
};

}  // namespace skein
