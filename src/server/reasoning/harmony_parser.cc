#include "server/reasoning/harmony_parser.h"

#include <algorithm>
#include <utility>

#include "server/tools/mark_scan.h"

namespace skein {
namespace {

constexpr std::string_view kHarmonyStart = "<|start|>";
constexpr std::string_view kHarmonyChannel = "<|channel|>";
constexpr std::string_view kHarmonyMessage = "<|message|>";
constexpr std::string_view kToFunction = "to=functions.";
constexpr std::string_view kHarmonyEnds[] = {"<|end|>", "<|return|>", "<|call|>", kHarmonyStart,
                                             kHarmonyChannel};
constexpr std::string_view kHarmonyBlank = " \n\r\t";

// The text up to white space or a mark.
std::string Word(std::string_view text) {
  const size_t blank = std::min(text.find_first_of(kHarmonyBlank), text.size());
  return std::string(text.substr(0, std::min(blank, text.find("<|"))));
}

}  // namespace

std::span<const std::string_view> HarmonyEnds() { return kHarmonyEnds; }

void AddHarmonyEnds(const Tokenizer& tokenizer, std::vector<TokenId>* ids) {
  for (const std::string_view mark : {"<|return|>", "<|call|>"}) {
    const auto id = tokenizer.TokenToId(mark);
    if (id && std::ranges::find(*ids, *id) == ids->end()) ids->push_back(*id);
  }
  // This mark ends a message, behind which the answer goes on.
  if (const auto end = tokenizer.TokenToId("<|end|>")) std::erase(*ids, *end);
}

HarmonyHeader ReadHarmonyHeader(std::string_view text) {
  HarmonyHeader header;
  // A model may begin a header anew.
  if (const size_t start = text.rfind(kHarmonyStart); start != text.npos) text.remove_prefix(start);
  if (const size_t at = text.rfind(kHarmonyChannel); at != text.npos) {
    header.channel = Word(text.substr(at + kHarmonyChannel.size()));
  }
  if (const size_t at = text.rfind(kToFunction); at != text.npos) {
    header.function = Word(text.substr(at + kToFunction.size()));
  }
  return header;
}

AnswerPiece HarmonyParser::Push(std::string_view text) {
  AnswerPiece piece;
  buffer_ += text;
  for (bool more = true; more && !buffer_.empty();) {
    more = mode_ == Mode::kStart    ? ReadStart()
           : mode_ == Mode::kHeader ? ReadHeader(&piece)
                                    : ReadBody(&piece);
  }
  return piece;
}

AnswerPiece HarmonyParser::Finish() {
  AnswerPiece piece;
  if (mode_ == Mode::kStart) mode_ = Mode::kContent;
  if (mode_ != Mode::kHeader) {
    AddBody(buffer_, &piece);
    EndBody(&piece);
  }
  buffer_.clear();
  return piece;
}

bool HarmonyParser::ReadStart() {
  const size_t first = buffer_.find_first_not_of(kHarmonyBlank);
  if (first == buffer_.npos) return false;
  const std::string_view rest = std::string_view(buffer_).substr(first);
  mode_ = Mode::kContent;
  for (const std::string_view mark :
       {kHarmonyChannel, kHarmonyStart, kHarmonyMessage, kToFunction}) {
    if (rest.starts_with(mark)) mode_ = Mode::kHeader;
    if (!MayBegin(rest, mark)) continue;
    mode_ = Mode::kStart;
    return false;
  }
  return true;
}

bool HarmonyParser::ReadHeader(AnswerPiece* piece) {
  const size_t end = buffer_.find(kHarmonyMessage, num_searched_);
  if (end == buffer_.npos) {
    num_searched_ = buffer_.size() - HeldBytes(buffer_, kHarmonyMessage);
    return false;
  }
  HarmonyHeader header = ReadHarmonyHeader(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end + kHarmonyMessage.size());
  num_searched_ = 0;
  in_message_ = false;
  if (has_tools_ && !header.function.empty()) {
    mode_ = Mode::kCall;
    piece->calls.push_back({num_calls_++, std::move(header.function), ""});
  } else {
    mode_ = separates_ && header.channel == "analysis" ? Mode::kReasoning : Mode::kContent;
  }
  return true;
}

bool HarmonyParser::ReadBody(AnswerPiece* piece) {
  const std::string_view rest = buffer_;
  size_t end = rest.npos;
  size_t held = 0;
  std::string_view found;
  for (const std::string_view mark : kHarmonyEnds) {
    held = std::max(held, HeldBytes(rest, mark));
    const size_t at = rest.find(mark);
    if (at >= end) continue;
    end = at;
    found = mark;
  }
  if (end == rest.npos) {
    AddBody(rest.substr(0, rest.size() - held), piece);
    buffer_.erase(0, rest.size() - held);
    return false;
  }
  AddBody(rest.substr(0, end), piece);
  EndBody(piece);
  const bool begins_header = found == kHarmonyStart || found == kHarmonyChannel;
  buffer_.erase(0, begins_header ? end : end + found.size());
  mode_ = Mode::kHeader;
  return true;
}

void HarmonyParser::AddBody(std::string_view text, AnswerPiece* piece) {
  if (text.empty()) return;
  const bool begins = !std::exchange(in_message_, true);
  if (mode_ == Mode::kCall) {
    piece->calls.push_back({num_calls_ - 1, "", std::string(text)});
    return;
  }
  const bool is_reasoning = mode_ == Mode::kReasoning;
  std::string& kind = is_reasoning ? piece->reasoning : piece->content;
  const bool follows = std::exchange(is_reasoning ? reasoned_ : has_content_, true);
  if (begins && follows) kind += '\n';
  kind += text;
}

// A call without a text has no arguments.
void HarmonyParser::EndBody(AnswerPiece* piece) {
  if (mode_ == Mode::kCall && !in_message_) piece->calls.push_back({num_calls_ - 1, "", "{}"});
}

}  // namespace skein
