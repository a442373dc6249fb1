// Implements the steps of a pre-tokenizer that only cut, and all steps for aligned text.
#include <algorithm>
#include <utility>

#include "base/interrupt/work_pause.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/unicode/utf8.h"

namespace skein {

template <typename Is>
void PreTokenizer::CutClass(Is is, SplitBehavior behavior, std::string_view piece,
                            std::vector<Match>* parts) const {
  size_t rest = 0;  // the beginning of the text that is not in `parts` yet
  SliceMeter slices;
  for (size_t pos = 0; pos < piece.size() && slices.GoOn(pos);) {
    const size_t begin = pos;
    if (!is(NextCodePoint(piece, &pos))) continue;
    if (begin > rest) parts->push_back({rest, begin, false});
    parts->push_back({begin, pos, true});
    rest = pos;
  }
  if (rest < piece.size()) parts->push_back({rest, piece.size(), false});
  ApplyBehavior(behavior, parts);
}

// \w+|[^\w\s]+
void PreTokenizer::CutWords(std::string_view piece, std::vector<Match>* parts) const {
  enum Kind { kSpace, kWord, kSign };
  const auto kind_of = [this](uint32_t c) {
    return classes_->IsWord(c) ? kWord : classes_->IsSpace(c) ? kSpace : kSign;
  };
  Kind last = kSpace;
  SliceMeter slices;
  for (size_t pos = 0; pos < piece.size() && slices.GoOn(pos);) {
    const size_t begin = pos;
    const Kind kind = kind_of(NextCodePoint(piece, &pos));
    if (kind != kSpace && kind == last) {
      parts->back().end = pos;
    } else if (kind != kSpace) {
      parts->push_back({begin, pos, false});
    }
    last = kind;
  }
}

Status PreTokenizer::Cut(const Step& step, std::string_view piece,
                         std::vector<Match>* parts) const {
  const auto is_space = [this](uint32_t c) { return classes_->IsSpace(c); };
  if (const auto* split = std::get_if<Split>(&step)) {
    SKEIN_RETURN_IF_ERROR(FindMatches(*split, piece, parts));
    ApplyBehavior(split->behavior, parts);
  } else if (const auto* punctuation = std::get_if<Punctuation>(&step)) {
    CutClass([this](uint32_t c) { return classes_->IsPunctuation(c); }, punctuation->behavior,
             piece, parts);
  } else if (const auto* digits = std::get_if<Digits>(&step)) {
    CutClass([this](uint32_t c) { return classes_->IsNumeric(c); },
             digits->individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, piece,
             parts);
  } else if (std::holds_alternative<Whitespace>(step)) {
    CutWords(piece, parts);
  } else if (std::holds_alternative<WhitespaceSplit>(step)) {
    CutClass(is_space, SplitBehavior::kRemoved, piece, parts);
  } else if (std::holds_alternative<Bert>(step)) {
    CutClass([&](uint32_t c) { return is_space(c) || classes_->IsPunctuation(c); },
             SplitBehavior::kIsolated, piece, parts);
    std::erase_if(*parts, [&](const Match& part) {
      size_t pos = part.begin;
      return part.is_match && is_space(NextCodePoint(piece, &pos));
    });
  } else if (const auto* delimiter = std::get_if<CharDelimiter>(&step)) {
    CutClass([&](uint32_t c) { return c == delimiter->delimiter; }, SplitBehavior::kRemoved, piece,
             parts);
  } else {
    size_t count = 0;
    for (size_t pos = 0; pos < piece.size(); ++count) {
      const size_t begin = pos;
      NextCodePoint(piece, &pos);
      if (count % std::get<FixedLength>(step).length == 0) parts->push_back({begin, begin, false});
      parts->back().end = pos;
    }
  }
  return Status::Ok();
}

bool PreTokenizer::needs_alignment() const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto* metaspace = std::get_if<Metaspace>(&steps_[i]);
    if (i > 0 && metaspace != nullptr && metaspace->prepend == PrependScheme::kFirst) return true;
  }
  return false;
}

bool PreTokenizer::depends_on_start() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    const auto* metaspace = std::get_if<Metaspace>(&step);
    return metaspace != nullptr && metaspace->prepend == PrependScheme::kFirst;
  });
}

Status PreTokenizer::AlignStep(const Step& step, AlignedText piece,
                               std::vector<AlignedText>* out) const {
  std::vector<Match> parts;
  const auto* byte_level = std::get_if<ByteLevel>(&step);
  if (byte_level != nullptr) {
    if (byte_level->add_prefix_space && !piece.text().starts_with(' ')) piece.Prepend(" ");
    const SplitScanner scanner = SplitScanner::Gpt2();
    for (size_t pos = 0; pos < piece.text().size();) {
      const size_t end = byte_level->use_regex ? scanner.MatchEnd(*classes_, piece.text(), pos)
                                               : piece.text().size();
      parts.push_back({pos, end, false});
      pos = end;
    }
  } else if (const auto* metaspace = std::get_if<Metaspace>(&step)) {
    const std::string& sign = metaspace->replacement;
    std::vector<std::pair<size_t, size_t>> spaces;
    for (size_t pos = 0; pos < piece.text().size(); ++pos) {
      if (piece.text()[pos] == ' ') spaces.emplace_back(pos, pos + 1);
    }
    piece.Replace(spaces, sign);
    const bool wanted =
        metaspace->prepend == PrependScheme::kAlways ||
        (metaspace->prepend == PrependScheme::kFirst && piece.original_begin() == 0);
    if (wanted && !piece.text().starts_with(sign)) piece.Prepend(sign);
    const std::string& text = piece.text();
    for (size_t pos = 0; pos < text.size();) {
      const size_t found =
          metaspace->split ? std::min(text.find(sign, pos), text.size()) : text.size();
      if (found > pos) parts.push_back({pos, found, false});
      if (found == text.size()) break;
      pos = found + sign.size();
      parts.push_back({found, pos, true});
    }
    ApplyBehavior(SplitBehavior::kMergedWithNext, &parts);
  } else {
    SKEIN_RETURN_IF_ERROR(Cut(step, piece.text(), &parts));
  }
  SliceMeter slices;
  for (const Match& part : parts) {
    if (!slices.GoOn(part.begin)) break;
    out->push_back(piece.Slice(part.begin, part.end));
    if (byte_level == nullptr) continue;
    std::vector<CharChange> letters;
    for (const char c : out->back().text()) {
      size_t pos = 0;
      letters.push_back({NextCodePoint(alphabet_.CharOf(static_cast<uint8_t>(c)), &pos),
                         IsContinuationByte(c) ? 1 : 0});
    }
    out->back().Transform(letters);
  }
  return Status::Ok();
}

Status PreTokenizer::Run(std::vector<AlignedText>* pieces) const {
  for (const Step& step : steps_) {
    std::vector<AlignedText> out;
    size_t done = 0;
    SliceMeter slices;
    for (AlignedText& piece : *pieces) {
      if (piece.text().empty()) continue;
      if (!slices.GoOn(done)) break;
      done += piece.text().size();
      SKEIN_RETURN_IF_ERROR(AlignStep(step, std::move(piece), &out));
    }
    *pieces = std::move(out);
  }
  return Status::Ok();
}

}  // namespace skein
