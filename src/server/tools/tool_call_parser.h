#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/tools/call_scanner.h"
#include "server/tools/tool_style.h"

namespace skein {

// Parts the text of an answer into content and calls, as it arrives:
//
//   I look it up. <tool_call> {"name": "find", "arguments": {"q": 1}} </tool_call>
//   |- content -|             |-------------- one call -------------|
//
// In styles without marks, an answer is calls if it begins with one of the request's functions. A
// text that only looks like a call is content. One thread.
class ToolCallParser {
 public:
  struct Piece {
    std::string content;
    std::vector<ToolCallDelta> calls;
  };

  ToolCallParser(ToolStyle style, std::vector<std::string> names);

  // Returns what the text decides; the rest is kept until more is known.
  Piece Push(std::string_view text);
  // The answer is complete: returns the rest.
  Piece Finish();
  int32_t num_calls() const { return num_calls_; }

 private:
  enum class Mode { kText, kCalls };

  // Each reads from buffer_[pos_]; returns false if it needs more text.
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
  const bool bare_;  // calls need no mark at the answer's beginning
  Mode mode_ = Mode::kText;
  bool at_start_ = true;    // only white space so far
  std::string buffer_;      // text that is not decided yet
  size_t pos_ = 0;          // in buffer_
  size_t calls_begin_ = 0;  // in buffer_: what is content if no call follows
  std::string space_;       // white space behind the content so far
  std::optional<CallScanner> scanner_;
  int32_t num_calls_ = 0;
};

}  // namespace skein
