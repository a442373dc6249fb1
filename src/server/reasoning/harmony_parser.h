#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/reasoning/answer_piece.h"
#include "text/tokenizer.h"

namespace skein {

// The header of a message in the harmony format, up to <|message|>.
struct HarmonyHeader {
  std::string channel;   // analysis, commentary or final; empty: not given
  std::string function;  // the recipient functions.NAME without its prefix; empty: there is none
};
HarmonyHeader ReadHarmonyHeader(std::string_view text);

// The marks that end a message: <|end|>, <|return|>, <|call|>, and those that begin another one's
// header, <|start|> and <|channel|>.
std::span<const std::string_view> HarmonyEnds();
// Adds the tokens that end a whole answer, behind its last message or a tool call, unless `ids` has
// them, and removes the one that ends a message. Not all files of a model name the right ones.
void AddHarmonyEnds(const Tokenizer& tokenizer, std::vector<TokenId>* ids);

// Splits an answer in OpenAI's harmony format (github.com/openai/harmony) into reasoning, content
// and tool calls, as the text arrives. The answer goes on behind the prompt's <|start|>assistant:
//
//   <|channel|>analysis<|message|>They greet.<|end|>
//   |---------- header ----------|-reasoning-|
//   <|start|>assistant<|channel|>final<|message|>Hello!<|return|>
//   |----------------- header -----------------|content|
//   <|channel|>commentary to=functions.find <|constrain|>json<|message|>{"q": 1}<|call|>
//   |---------------------------- header -----------------------------|-- call --|
//
// Messages to a function are tool calls, if the request has tools. Other messages are reasoning in
// the channel analysis, and content in any other channel. A line break joins messages of one
// kind. An answer that does not begin with a header begins with content. One thread.
class HarmonyParser {
 public:
  // `separates`: analysis is reasoning, otherwise it is content, too.
  HarmonyParser(bool has_tools, bool separates) : has_tools_(has_tools), separates_(separates) {}

  // Returns what is certain so far. The rest is kept until more text comes.
  AnswerPiece Push(std::string_view text);
  // Ends the answer: returns the rest. A header without a message is dropped.
  AnswerPiece Finish();
  int32_t num_calls() const { return num_calls_; }

 private:
  enum class Mode { kStart, kHeader, kReasoning, kContent, kCall };

  // Each of these reads from the beginning of buffer_ and returns false if it needs more text.
  bool ReadStart();
  bool ReadHeader(AnswerPiece* piece);
  bool ReadBody(AnswerPiece* piece);
  void AddBody(std::string_view text, AnswerPiece* piece);
  void EndBody(AnswerPiece* piece);

  const bool has_tools_;
  const bool separates_;
  Mode mode_ = Mode::kStart;
  std::string buffer_;        // text that belongs to no message yet
  size_t num_searched_ = 0;   // bytes of buffer_ in which no <|message|> begins
  bool in_message_ = false;   // the message has text
  bool reasoned_ = false;     // there is reasoning
  bool has_content_ = false;  // there is content
  int32_t num_calls_ = 0;
};

}  // namespace skein
