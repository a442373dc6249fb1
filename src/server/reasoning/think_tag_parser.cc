#include "server/reasoning/think_tag_parser.h"

#include <algorithm>
#include <utility>

#include "server/reasoning/reasoning_style.h"
#include "server/tools/mark_scan.h"

namespace skein {
namespace {

constexpr std::string_view kBlank = " \n\r\t";

}  // namespace

AnswerPiece ThinkTagParser::Push(std::string_view text) {
  AnswerPiece piece;
  buffer_ += text;
  for (bool more = true; more && !buffer_.empty();) {
    switch (mode_) {
      case Mode::kStart:
        more = ReadStart();
        break;
      case Mode::kThought:
        more = ReadThought(&piece);
        break;
      case Mode::kBehind:
        more = ReadBehind();
        break;
      case Mode::kContent:
        piece.content += std::exchange(buffer_, {});
        break;
    }
  }
  return piece;
}

AnswerPiece ThinkTagParser::Finish() {
  AnswerPiece piece;
  const std::string rest = std::exchange(buffer_, {});
  if (mode_ == Mode::kThought || (mode_ == Mode::kStart && in_thoughts_)) {
    AddReasoning(rest, &piece);
  } else if (mode_ != Mode::kBehind) {
    piece.content = rest;
  }
  return piece;
}

bool ThinkTagParser::ReadStart() {
  const size_t first = buffer_.find_first_not_of(kBlank);
  if (first == buffer_.npos) return false;
  const std::string_view rest = std::string_view(buffer_).substr(first);
  if (MayBegin(rest, kThinkBegin)) return false;
  if (rest.starts_with(kThinkBegin)) {
    buffer_.erase(0, first + kThinkBegin.size());
    mode_ = Mode::kThought;
  } else {
    mode_ = in_thoughts_ ? Mode::kThought : Mode::kContent;
  }
  return true;
}

bool ThinkTagParser::ReadThought(AnswerPiece* piece) {
  const std::string_view rest = buffer_;
  const size_t end = rest.find(kThinkEnd);
  if (end != rest.npos) {
    AddReasoning(rest.substr(0, end), piece);
    buffer_.erase(0, end + kThinkEnd.size());
    mode_ = Mode::kBehind;
    return true;
  }
  const size_t size = rest.size() - HeldBytes(rest, kThinkEnd);
  AddReasoning(rest.substr(0, size), piece);
  buffer_.erase(0, size);
  return false;
}

bool ThinkTagParser::ReadBehind() {
  const size_t first = buffer_.find_first_not_of(kBlank);
  if (first == buffer_.npos) {
    buffer_.clear();
    return false;
  }
  buffer_.erase(0, first);
  mode_ = Mode::kContent;
  return true;
}

// White space becomes reasoning only between other reasoning.
void ThinkTagParser::AddReasoning(std::string_view text, AnswerPiece* piece) {
  if (!reasoned_) text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  const size_t last = text.find_last_not_of(kBlank);
  if (last == text.npos) {
    space_ += text;
    return;
  }
  reasoned_ = true;
  piece->reasoning += std::exchange(space_, std::string(text.substr(last + 1)));
  piece->reasoning += text.substr(0, last + 1);
}

}  // namespace skein
