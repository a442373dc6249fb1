#include "text/tokenizer/normalizer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/interrupt/work_pause.h"
#include "text/unicode/normalizer_tables.h"

namespace skein {
namespace {

bool Contains(std::span<const CodePointRange> ranges, uint32_t c) {
  const auto it = std::partition_point(ranges.begin(), ranges.end(),
                                       [c](const CodePointRange& range) { return range.last < c; });
  return it != ranges.end() && it->first <= c;
}

bool IsAscii(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
}

bool IsSpace(uint32_t c) { return Contains(kSpaceRanges, c); }

// Whether a code point lies in one of BERT's blocks of ideographs.
bool IsIdeograph(uint32_t c) {
  static constexpr CodePointRange kIdeographs[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},  {0x20000, 0x2A6DF},
      {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return Contains(kIdeographs, c);
}

bool NmtDrops(uint32_t c) {
  return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
         c == 0x9F;
}

bool IsSpaceOfNmt(uint32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

std::vector<uint32_t> CodePoints(std::string_view text) {
  std::vector<uint32_t> code_points;
  for (size_t pos = 0; pos < text.size();) code_points.push_back(NextCodePoint(text, &pos));
  return code_points;
}

// If a text is all white space, the characters are counted at both ends, as in the reference, and
// the text becomes empty.
void ApplyStrip(const Normalizer::Strip& step, AlignedText* text) {
  const std::vector<uint32_t> chars = CodePoints(text->text());
  size_t num_left = 0, num_right = 0;
  while (step.left && num_left < chars.size() && IsSpace(chars[num_left])) ++num_left;
  while (step.right && num_right < chars.size() && IsSpace(chars[chars.size() - 1 - num_right])) {
    ++num_right;
  }
  if (num_left == 0 && num_right == 0) return;
  std::vector<CharChange> kept;
  for (size_t i = num_left; i + num_right < chars.size(); ++i) kept.push_back({chars[i], 0});
  if (!kept.empty()) kept.back().change = -static_cast<int32_t>(num_right);
  text->Transform(kept, num_left);
}

void ApplyByteLevel(const ByteAlphabet& alphabet, AlignedText* text) {
  std::vector<CharChange> chars;
  for (const char c : text->text()) {
    size_t pos = 0;
    const uint32_t letter = NextCodePoint(alphabet.CharOf(static_cast<uint8_t>(c)), &pos);
    chars.push_back({letter, IsContinuationByte(c) ? 1 : 0});
  }
  text->Transform(chars);
}

// Calls `visit(begin, end)` for each match of the rule in `text`, in order.
template <typename Visit>
Status ForEachMatch(const ReplaceRule& rule, std::string_view text, Visit visit) {
  size_t pos = 0;
  SliceMeter slices;
  while (slices.GoOn(pos)) {
    bool found = false;
    size_t begin = 0, end = 0;
    if (rule.regex) {
      SKEIN_RETURN_IF_ERROR(rule.regex->Find(text, pos, &found, &begin, &end));
    } else {
      begin = text.find(rule.literal, pos);
      found = begin != std::string_view::npos;
      end = begin + rule.literal.size();
    }
    if (!found) break;
    visit(begin, end);
    pos = end;
  }
  return Status::Ok();
}

}  // namespace

Status ReplaceRule::Apply(std::string_view text, std::string* out) const {
  out->clear();
  size_t rest = 0;
  SKEIN_RETURN_IF_ERROR(ForEachMatch(*this, text, [&](size_t begin, size_t end) {
    out->append(text.substr(rest, begin - rest));
    out->append(content);
    rest = end;
  }));
  out->append(text.substr(rest));
  return Status::Ok();
}

Status ReplaceRule::Apply(AlignedText* text) const {
  std::vector<std::pair<size_t, size_t>> ranges;
  SKEIN_RETURN_IF_ERROR(ForEachMatch(
      *this, text->text(), [&](size_t begin, size_t end) { ranges.emplace_back(begin, end); }));
  text->Replace(ranges, content);
  return Status::Ok();
}

Normalizer::Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {
  bool needs_forms = false, needs_compatible = false, needs_lower = false;
  for (const Step& step : steps_) {
    if (std::holds_alternative<NfcStep>(step)) {
      nfc_.emplace();
      needs_forms = true;
    } else if (!std::holds_alternative<Prepend>(step) &&
               !std::holds_alternative<ReplaceRule>(step)) {
      is_simple_ = false;
    }
    if (const auto* form = std::get_if<Form>(&step)) {
      needs_forms = true;
      needs_compatible = needs_compatible || form->form != NormalForm::kNfd;
    }
    needs_forms = needs_forms || std::holds_alternative<Bert>(step);
    needs_lower = needs_lower || std::holds_alternative<Bert>(step) ||
                  std::holds_alternative<Lowercase>(step);
  }
  if (needs_forms) forms_ = std::make_shared<const NormalForms>(needs_compatible);
  for (size_t i = 0; needs_lower && i < kLowerCase.size(); i += 2 + kLowerCase[i + 1]) {
    lower_[kLowerCase[i]] = static_cast<uint32_t>(i + 1);
  }
}

bool Normalizer::IsNormalized(std::string_view text) const {
  return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    return std::holds_alternative<NfcStep>(step) && nfc_->FindUnstable(text, 0) == text.size();
  });
}

Status Normalizer::Normalize(std::string_view text, std::string* out) const {
  if (!is_simple_) {
    AlignedText aligned(text);
    SKEIN_RETURN_IF_ERROR(Normalize(&aligned));
    *out = aligned.text();
    return Status::Ok();
  }
  out->assign(text);
  for (const Step& step : steps_) {
    if (std::holds_alternative<NfcStep>(step)) {
      *out = nfc_->Normalize(*out);
    } else if (const auto* prepend = std::get_if<Prepend>(&step)) {
      if (!out->empty()) out->insert(0, prepend->text);
    } else {
      std::string replaced;
      SKEIN_RETURN_IF_ERROR(std::get<ReplaceRule>(step).Apply(*out, &replaced));
      *out = std::move(replaced);
    }
  }
  return Status::Ok();
}

bool Normalizer::is_at_most_nfc() const {
  return std::ranges::all_of(
      steps_, [](const Step& step) { return std::holds_alternative<NfcStep>(step); });
}

bool Normalizer::may_drop() const {
  return !std::all_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return std::holds_alternative<NfcStep>(step) || std::holds_alternative<Prepend>(step);
  });
}

void Normalizer::ApplyForm(NormalForm form, AlignedText* text) const {
  if (IsAscii(text->text())) return;
  std::vector<CharChange> chars;
  forms_->Run(text->text(), form, &chars);
  text->Transform(chars);
}

void Normalizer::ApplyLowercase(AlignedText* text) const {
  std::vector<CharChange> chars;
  for (const uint32_t c : CodePoints(text->text())) {
    const auto it = lower_.find(c);
    if (it == lower_.end()) {
      chars.push_back({c, 0});
      continue;
    }
    const uint32_t length = kLowerCase[it->second];
    for (uint32_t i = 1; i <= length; ++i) {
      chars.push_back({kLowerCase[it->second + i], i == 1 ? 0 : 1});
    }
  }
  text->Transform(chars);
}

void Normalizer::ApplyBert(const Bert& step, AlignedText* text) const {
  if (step.clean_text) {
    text->Filter([](uint32_t c) { return !Contains(kBertControlRanges, c); });
    text->MapChars([](uint32_t c) { return IsSpace(c) ? uint32_t{' '} : c; });
  }
  if (step.handle_chinese_chars) {
    std::vector<CharChange> chars;
    for (const uint32_t c : CodePoints(text->text())) {
      if (IsIdeograph(c)) {
        chars.insert(chars.end(), {{' ', 0}, {c, 1}, {' ', 1}});
      } else {
        chars.push_back({c, 0});
      }
    }
    text->Transform(chars);
  }
  if (step.strip_accents) {
    ApplyForm(NormalForm::kNfd, text);
    text->Filter([](uint32_t c) { return !Contains(kNonspacingMarkRanges, c); });
  }
  if (step.lowercase) ApplyLowercase(text);
}

Status Normalizer::Normalize(AlignedText* text) const {
  for (const Step& step : steps_) {
    if (text->text().size() >= SliceMeter::kSliceBytes && !MayGoOn()) break;
    if (std::holds_alternative<NfcStep>(step)) {
      ApplyForm(NormalForm::kNfc, text);
    } else if (const auto* prepend = std::get_if<Prepend>(&step)) {
      text->Prepend(prepend->text);
    } else if (const auto* rule = std::get_if<ReplaceRule>(&step)) {
      SKEIN_RETURN_IF_ERROR(rule->Apply(text));
    } else if (const auto* form = std::get_if<Form>(&step)) {
      ApplyForm(form->form, text);
    } else if (const auto* bert = std::get_if<Bert>(&step)) {
      ApplyBert(*bert, text);
    } else if (std::holds_alternative<Lowercase>(step)) {
      ApplyLowercase(text);
    } else if (std::holds_alternative<StripAccents>(step)) {
      text->Filter([](uint32_t c) { return !Contains(kCombiningMarkRanges, c); });
    } else if (const auto* strip = std::get_if<Strip>(&step)) {
      ApplyStrip(*strip, text);
    } else if (std::holds_alternative<Nmt>(step)) {
      text->Filter([](uint32_t c) { return !NmtDrops(c); });
      text->MapChars([](uint32_t c) { return IsSpaceOfNmt(c) ? uint32_t{' '} : c; });
    } else if (std::holds_alternative<ByteLevel>(step)) {
      ApplyByteLevel(alphabet_, text);
    } else {
      std::get<std::shared_ptr<const Precompiled>>(step)->Apply(text);
    }
  }
  return Status::Ok();
}

}  // namespace skein
