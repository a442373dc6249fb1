#include "server/reasoning/answer_parser.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace skein {

AnswerParser::AnswerParser(const AnswerParsing& parsing) : includes_(parsing.includes) {
  const bool harmony_calls = parsing.tools && parsing.tools->style == ToolStyle::kHarmony;
  if (parsing.style == ReasoningStyle::kHarmony || harmony_calls) {
    harmony_.emplace(harmony_calls, parsing.separates);
  } else if (parsing.style == ReasoningStyle::kThinkTags && parsing.separates) {
    thoughts_.emplace(parsing.in_thoughts);
  }
  if (parsing.tools && !harmony_calls) tools_.emplace(parsing.tools->style, parsing.tools->names);
}

AnswerPiece AnswerParser::Push(std::string_view text) {
  AnswerPiece piece = harmony_    ? harmony_->Push(text)
                      : thoughts_ ? thoughts_->Push(text)
                                  : AnswerPiece{.content = std::string(text)};
  return WithCalls(std::move(piece), /*finish=*/false);
}

AnswerPiece AnswerParser::Finish() {
  AnswerPiece piece = harmony_    ? harmony_->Finish()
                      : thoughts_ ? thoughts_->Finish()
                                  : AnswerPiece{};
  return WithCalls(std::move(piece), /*finish=*/true);
}

int32_t AnswerParser::num_calls() const {
  return tools_ ? tools_->num_calls() : harmony_ ? harmony_->num_calls() : 0;
}

AnswerPiece AnswerParser::WithCalls(AnswerPiece piece, bool finish) {
  if (!includes_) piece.reasoning.clear();
  if (!tools_) return piece;
  ToolCallParser::Piece parsed = tools_->Push(piece.content);
  piece.content = std::move(parsed.content);
  std::ranges::move(parsed.calls, std::back_inserter(piece.calls));
  if (!finish) return piece;
  parsed = tools_->Finish();
  piece.content += parsed.content;
  std::ranges::move(parsed.calls, std::back_inserter(piece.calls));
  return piece;
}

}  // namespace skein
