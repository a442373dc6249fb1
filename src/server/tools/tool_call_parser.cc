#include "server/tools/tool_call_parser.h"

#include <algorithm>
#include <utility>

#include "server/tools/mark_scan.h"

namespace skein {
namespace {

constexpr std::string_view kSpace = " \n\r\t";
constexpr std::string_view kArgsMark = "[ARGS]";
// Models without a form of their own (Gemma) often put their JSON into a block of code.
constexpr ToolMarks kCodeBlock = {"```json", "```"};

}  // namespace

ToolCallParser::ToolCallParser(ToolStyle style, std::vector<std::string> names)
    : style_(style),
      marks_(style == ToolStyle::kJson ? kCodeBlock : MarksOf(style)),
      names_(std::move(names)),
      bare_(style == ToolStyle::kLlama3 || style == ToolStyle::kJson) {}

ToolCallParser::Piece ToolCallParser::Push(std::string_view text) {
  Piece piece;
  buffer_ += text;
  for (bool more = true; more && pos_ < buffer_.size();) {
    more = mode_ == Mode::kText ? ReadText(&piece)
           : scanner_           ? ReadCall(&piece)
                                : ReadBetweenCalls(&piece);
  }
  if (scanner_) scanner_->Flush(&piece.calls);
  if (mode_ == Mode::kText || (scanner_ && scanner_->emitted())) {
    buffer_.erase(0, pos_);
    calls_begin_ = pos_ = 0;
  }
  return piece;
}

ToolCallParser::Piece ToolCallParser::Finish() {
  Piece piece;
  if (scanner_ && scanner_->emitted()) {
    ++num_calls_;  // cut short
  } else if (mode_ == Mode::kText) {
    AddContent(std::string_view(buffer_).substr(pos_), &piece);
  } else if (scanner_ || num_calls_ == 0) {
    AddContent(std::string_view(buffer_).substr(calls_begin_), &piece);
  }
  if (num_calls_ == 0) piece.content += space_;
  buffer_.clear();
  space_.clear();
  pos_ = calls_begin_ = 0;
  scanner_.reset();
  return piece;
}

// White space becomes content only if more content follows it.
void ToolCallParser::AddContent(std::string_view text, Piece* piece) {
  const size_t last = text.find_last_not_of(kSpace);
  if (last == text.npos) {
    space_ += text;
    return;
  }
  at_start_ = false;
  piece->content += std::exchange(space_, std::string(text.substr(last + 1)));
  piece->content += text.substr(0, last + 1);
}

void ToolCallParser::BeginCalls(size_t end_of_mark) {
  mode_ = Mode::kCalls;
  calls_begin_ = pos_;
  pos_ = end_of_mark;
}

bool ToolCallParser::ReadText(Piece* piece) {
  if (bare_ && at_start_ && ReadBeginning()) return mode_ == Mode::kCalls;
  const std::string_view rest = std::string_view(buffer_).substr(pos_);
  const size_t mark = marks_.begin.empty() ? rest.npos : rest.find(marks_.begin);
  if (mark != rest.npos) {
    AddContent(rest.substr(0, mark), piece);
    pos_ += mark;
    BeginCalls(pos_ + marks_.begin.size());
    return true;
  }
  const size_t size = rest.size() - HeldBytes(rest, marks_.begin);
  AddContent(rest.substr(0, size), piece);
  pos_ += size;
  return false;
}

// Begins calls if the answer begins with a bracket. Returns false if it begins with other text,
// true otherwise.
bool ToolCallParser::ReadBeginning() {
  const size_t first = buffer_.find_first_not_of(kSpace, pos_);
  if (first == buffer_.npos) return true;
  if (buffer_[first] == '{' || (buffer_[first] == '[' && style_ == ToolStyle::kJson)) {
    BeginCalls(first);
    return true;
  }
  return false;
}

// Reads marks, brackets and commas around calls.
bool ToolCallParser::ReadBetweenCalls(Piece* piece) {
  const std::string_view rest = std::string_view(buffer_).substr(pos_);
  const char c = rest.front();
  for (const std::string_view mark : {marks_.end, marks_.begin}) {
    if (mark.empty()) continue;
    if (rest.starts_with(mark)) {
      // A block of code without a call is content.
      if (style_ == ToolStyle::kJson && mark == marks_.end &&
          std::string_view(buffer_).substr(calls_begin_).starts_with(marks_.begin)) {
        GiveUp(piece);
        return true;
      }
      pos_ += mark.size();
      if (mark == marks_.end) mode_ = Mode::kText;
      return true;
    }
    if (MayBegin(rest, mark)) return false;
  }
  if (c == '{') {
    const bool named = bare_ && (num_calls_ == 0 || style_ == ToolStyle::kJson);
    scanner_.emplace(num_calls_, named ? &names_ : nullptr);
    return true;
  }
  if (kSpace.find(c) != kSpace.npos || c == ',' || c == ';' || c == '[' || c == ']') {
    ++pos_;
    return true;
  }
  if (style_ == ToolStyle::kMistral) return ReadName(piece);
  GiveUp(piece);
  return true;
}

// Reads the name of a call in Mistral's newer form, up to its arguments.
bool ToolCallParser::ReadName(Piece* piece) {
  const std::string_view rest = std::string_view(buffer_).substr(pos_);
  const size_t brace = rest.find('{');
  if (brace == rest.npos) return false;
  std::string_view name = rest.substr(0, brace);
  if (const size_t mark = name.find(kArgsMark); mark != name.npos) name = name.substr(0, mark);
  // The call's id may stand between the name and the mark.
  name = name.substr(0, name.find("[CALL_ID]"));
  while (!name.empty() && kSpace.find(name.back()) != kSpace.npos) name.remove_suffix(1);
  if (std::ranges::find(names_, name) == names_.end()) {
    GiveUp(piece);
    return true;
  }
  scanner_.emplace(num_calls_, std::string(name));
  pos_ += brace;
  return true;
}

bool ToolCallParser::ReadCall(Piece* piece) {
  while (pos_ < buffer_.size()) {
    const CallScanner::State state = scanner_->Push(buffer_[pos_], &piece->calls);
    if (state == CallScanner::State::kBad) {
      GiveUp(piece);
      return true;
    }
    ++pos_;
    if (state == CallScanner::State::kReading) continue;
    scanner_.reset();
    ++num_calls_;
    buffer_.erase(0, pos_);
    calls_begin_ = pos_ = 0;
    return true;
  }
  return false;
}

// The text since the last call turns out to be content.
void ToolCallParser::GiveUp(Piece* piece) {
  const bool emitted = scanner_ && scanner_->emitted();
  if (emitted) ++num_calls_;
  scanner_.reset();
  mode_ = Mode::kText;
  if (!emitted) {
    const size_t first = buffer_.find_first_not_of(kSpace, calls_begin_);
    if (first != buffer_.npos) {
      AddContent(std::string_view(buffer_).substr(calls_begin_, first + 1 - calls_begin_), piece);
      pos_ = first + 1;
    }
  }
  at_start_ = false;
}

}  // namespace skein
