#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/reasoning/answer_parser.h"
#include "text/tokenizer.h"

namespace skein {

// Counts the tokens of an answer's reasoning, without the marks around it, by their ids. It finds
// the reasoning where AnswerParser finds it. One thread.
class ReasoningCounter {
 public:
  // Nullopt if the answer has no reasoning of its own, or if a mark is not one token of the
  // tokenizer: a token may then belong to a mark only in part. `tokenizer` must outlive the
  // counter.
  static std::optional<ReasoningCounter> Make(const AnswerParsing& parsing,
                                              const Tokenizer* tokenizer);

  void Count(TokenId id);
  int32_t count() const { return count_; }

 private:
  enum class Mode { kStart, kReasoning, kHeader, kContent };

  ReasoningCounter(const AnswerParsing& parsing, const Tokenizer* tokenizer);

  void CountThinkTags(TokenId id);
  void CountHarmony(TokenId id);
  bool IsBlank(TokenId id) const;

  const Tokenizer* tokenizer_;
  ReasoningStyle style_;
  bool in_thoughts_;
  bool has_tools_;
  TokenId begin_ = -1;           // <think> or <|message|>
  std::vector<TokenId> ends_;    // each ends the reasoning
  std::vector<TokenId> header_;  // of the message that begins (kHarmony)
  Mode mode_;
  int32_t count_ = 0;
};

}  // namespace skein
