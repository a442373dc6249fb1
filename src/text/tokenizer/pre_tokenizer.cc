#include "text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/interrupt/work_pause.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

// Calls `visit(piece)` for each piece in order.
template <typename Visit>
void ForEachPiece(const Pieces& pieces, Visit visit) {
  size_t begin = 0;
  for (const size_t end : pieces.ends) {
    visit(std::string_view(pieces.text).substr(begin, end - begin));
    begin = end;
  }
}

void AddPiece(std::string_view piece, Pieces* out) {
  if (piece.empty()) return;
  out->text += piece;
  out->ends.push_back(out->text.size());
}

}  // namespace

PreTokenizer::PreTokenizer(std::vector<Step> steps, std::shared_ptr<const CharClasses> classes)
    : steps_(std::move(steps)),
      whole_scanner_(FindWholeScanner(steps_)),
      classes_(std::move(classes)) {}

std::optional<SplitScanner> PreTokenizer::FindWholeScanner(const std::vector<Step>& steps) {
  const ByteLevel* last = steps.empty() ? nullptr : std::get_if<ByteLevel>(&steps.back());
  if (last == nullptr || last->add_prefix_space) return std::nullopt;
  if (last->use_regex) {
    if (steps.size() == 1) return SplitScanner::Gpt2();
    return std::nullopt;
  }
  const Split* split = steps.size() == 2 ? std::get_if<Split>(&steps[0]) : nullptr;
  // `invert` exchanges the matches and the text between them, which gives the same pieces.
  if (split == nullptr || split->behavior != SplitBehavior::kIsolated) return std::nullopt;
  return split->scanner;
}

// Folds a list of (range, whether it is a match) pairs that cover a text, as the reference does.
void PreTokenizer::ApplyBehavior(SplitBehavior behavior, std::vector<Match>* matches) {
  std::vector<Match> out;
  bool previous = false;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return;
    case SplitBehavior::kRemoved:
      std::erase_if(*matches, [](const Match& match) { return match.is_match; });
      return;
    case SplitBehavior::kContiguous:
      for (const Match& match : *matches) {
        if (match.is_match == previous && !out.empty()) {
          out.back().end = match.end;
        } else {
          out.push_back(match);
        }
        previous = match.is_match;
      }
      break;
    case SplitBehavior::kMergedWithPrevious:
      for (const Match& match : *matches) {
        if (match.is_match && !previous && !out.empty()) {
          out.back().end = match.end;
        } else {
          out.push_back(match);
        }
        previous = match.is_match;
      }
      break;
    case SplitBehavior::kMergedWithNext:
      for (auto match = matches->rbegin(); match != matches->rend(); ++match) {
        if (match->is_match && !previous && !out.empty()) {
          out.back().begin = match->begin;
        } else {
          out.push_back(*match);
        }
        previous = match->is_match;
      }
      std::reverse(out.begin(), out.end());
      break;
  }
  *matches = std::move(out);
}

Status PreTokenizer::FindMatches(const Split& step, std::string_view piece,
                                 std::vector<Match>* matches) const {
  size_t pos = 0;
  SliceMeter slices;
  while (pos < piece.size() && slices.GoOn(pos)) {
    size_t begin = pos, end = 0;
    if (step.scanner) {
      end = step.scanner->MatchEnd(*classes_, piece, pos);
    } else {
      bool found = false;
      SKEIN_RETURN_IF_ERROR(step.regex->Find(piece, pos, &found, &begin, &end));
      if (!found) break;
    }
    if (begin > pos) matches->push_back({pos, begin, step.invert});
    matches->push_back({begin, end, !step.invert});
    pos = end;
  }
  if (pos < piece.size()) matches->push_back({pos, piece.size(), step.invert});
  return Status::Ok();
}

Status PreTokenizer::RunCut(const Step& step, Pieces* pieces) const {
  Pieces out;
  std::vector<Match> parts;
  Status status;
  SliceMeter slices;
  ForEachPiece(*pieces, [&](std::string_view piece) {
    if (!status.ok() || !slices.GoOn(out.text.size())) return;
    parts.clear();
    status = Cut(step, piece, &parts);
    for (const Match& part : parts) {
      AddPiece(piece.substr(part.begin, part.end - part.begin), &out);
    }
  });
  *pieces = std::move(out);
  return status;
}

void PreTokenizer::RunByteLevel(const ByteLevel& step, bool raw_bytes, Pieces* pieces) const {
  Pieces out;
  const SplitScanner scanner = SplitScanner::Gpt2();
  std::string prefixed;
  SliceMeter slices;
  ForEachPiece(*pieces, [&](std::string_view piece) {
    if (step.add_prefix_space && !piece.starts_with(' ')) {
      prefixed.assign(" ").append(piece);
      piece = prefixed;
    }
    size_t pos = 0;
    while (pos < piece.size() && slices.GoOn(out.text.size())) {
      const size_t end = step.use_regex ? scanner.MatchEnd(*classes_, piece, pos) : piece.size();
      const std::string_view word = piece.substr(pos, end - pos);
      if (raw_bytes) {
        AddPiece(word, &out);
      } else {
        AddPiece(alphabet_.Map(word), &out);
      }
      pos = end;
    }
  });
  *pieces = std::move(out);
}

void PreTokenizer::RunMetaspace(const Metaspace& step, bool at_start, Pieces* pieces) const {
  Pieces out;
  bool first = at_start;
  ForEachPiece(*pieces, [&](std::string_view piece) {
    std::string text;
    for (const char c : piece) {
      if (c == ' ') {
        text += step.replacement;
      } else {
        text += c;
      }
    }
    const bool wanted =
        step.prepend == PrependScheme::kAlways || (step.prepend == PrependScheme::kFirst && first);
    first = false;
    if (wanted && !text.starts_with(step.replacement)) text.insert(0, step.replacement);
    if (!step.split) {
      AddPiece(text, &out);
      return;
    }
    std::vector<Match> matches;
    size_t pos = 0;
    while (pos < text.size()) {
      const size_t found = std::min(text.find(step.replacement, pos), text.size());
      if (found > pos) matches.push_back({pos, found, false});
      if (found == text.size()) break;
      pos = found + step.replacement.size();
      matches.push_back({found, pos, true});
    }
    ApplyBehavior(SplitBehavior::kMergedWithNext, &matches);
    for (const Match& match : matches) {
      AddPiece(std::string_view(text).substr(match.begin, match.end - match.begin), &out);
    }
  });
  *pieces = std::move(out);
}

Status PreTokenizer::Run(std::string text, bool at_start, bool raw_bytes, Pieces* pieces) const {
  pieces->ends.clear();
  if (!text.empty()) pieces->ends.push_back(text.size());
  pieces->text = std::move(text);
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (const auto* byte_level = std::get_if<ByteLevel>(&steps_[i])) {
      RunByteLevel(*byte_level, raw_bytes && i + 1 == steps_.size(), pieces);
    } else if (const auto* metaspace = std::get_if<Metaspace>(&steps_[i])) {
      RunMetaspace(*metaspace, at_start, pieces);
    } else {
      SKEIN_RETURN_IF_ERROR(RunCut(steps_[i], pieces));
    }
  }
  return Status::Ok();
}

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
