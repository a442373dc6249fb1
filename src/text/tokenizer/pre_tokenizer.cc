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

}  // namespace skein
