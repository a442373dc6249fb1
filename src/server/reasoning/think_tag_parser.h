#pragma once

#include <string>
#include <string_view>

#include "server/reasoning/answer_piece.h"

namespace skein {

// Splits an answer into a thought at its beginning and content, as the text arrives:
//
//   <think> Let me see. </think> It is 4.
//           |reasoning|          |content|
//
// White space around the thought and before the content behind it is dropped, as llama.cpp does. A
// text that does not begin with <think> is content, white space included; later tags are content.
// One thread.
class ThinkTagParser {
 public:
  // `in_thoughts`: the prompt ends inside a thought, so the answer may lack <think>.
  explicit ThinkTagParser(bool in_thoughts) : in_thoughts_(in_thoughts) {}

  // Returns what is certain so far. The rest is kept until more text comes.
  AnswerPiece Push(std::string_view text);
  // Ends the answer: returns the rest.
  AnswerPiece Finish();

 private:
  enum class Mode { kStart, kThought, kBehind, kContent };

  // Each of these reads from the beginning of buffer_ and returns false if it needs more text.
  bool ReadStart();
  bool ReadThought(AnswerPiece* piece);
  bool ReadBehind();
  void AddReasoning(std::string_view text, AnswerPiece* piece);

  const bool in_thoughts_;
  Mode mode_ = Mode::kStart;
  std::string buffer_;     // text that is neither reasoning nor content yet
  std::string space_;      // white space after the reasoning so far
  bool reasoned_ = false;  // there is reasoning
};

}  // namespace skein
