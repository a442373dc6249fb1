#include "server/decisions/option_spellings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace skein {
namespace {

constexpr std::array<std::string_view, 5> kWideSpaces = {"\xC2\xA0", "\xE2\x80\x8B", "\xE3\x80\x80",
                                                         "\xEF\xBB\xBF", "\xE2\x80\x8D"};

struct YesNo {
  std::string_view yes;
  std::string_view no;
};
// Full-width English first, then the other languages.
constexpr YesNo kYesNo[] = {
    {"ｙｅｓ", "ｎｏ"}, {"ja", "nein"}, {"oui", "non"},     {"sí", "no"},     {"sì", "no"},
    {"sim", "não"},     {"ja", "nee"},  {"ja", "nej"},      {"tak", "nie"},   {"ano", "ne"},
    {"да", "нет"},      {"так", "ні"},  {"evet", "hayır"},  {"ya", "tidak"},  {"có", "không"},
    {"是", "否"},       {"是", "不是"}, {"はい", "いいえ"}, {"예", "아니요"}, {"네", "아니요"}};

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsSmall(char c) { return c >= 'a' && c <= 'z'; }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }
bool IsWordByte(char c) {
  return static_cast<unsigned char>(c) >= 0x80 || IsSmall(c) || IsCapital(c);
}

// Whether `text` contains `word`. A word in Latin letters must stand alone. Other words may stand
// inside a text that is written without spaces.
bool Names(std::string_view text, std::string_view word) {
  const bool latin = static_cast<unsigned char>(word[0]) < 0x80;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (!latin || ((at == 0 || !IsWordByte(text[at - 1])) &&
                   (end == text.size() || !IsWordByte(text[end])))) {
      return true;
    }
  }
  return false;
}

void AddNew(std::string text, std::vector<std::string>* list) {
  if (std::ranges::find(*list, text) == list->end()) list->push_back(std::move(text));
}

}  // namespace

std::string_view TrimmedOption(std::string_view text) {
  for (bool changed = true; changed;) {
    const size_t size = text.size();
    while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
    while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
    for (const std::string_view space : kWideSpaces) {
      if (text.starts_with(space)) text.remove_prefix(space.size());
      if (text.ends_with(space)) text.remove_suffix(space.size());
    }
    changed = text.size() != size;
  }
  return text;
}

std::vector<std::string> SpellingsOfText(std::string_view text) {
  std::string changed(TrimmedOption(text));
  std::vector<std::string> spellings = {changed};
  if (changed.empty()) return spellings;
  if (IsSmall(changed[0])) {
    changed[0] = static_cast<char>(changed[0] - 'a' + 'A');
    AddNew(changed, &spellings);
  } else if (IsCapital(changed[0])) {
    changed[0] = static_cast<char>(changed[0] - 'A' + 'a');
    AddNew(changed, &spellings);
  }
  return spellings;
}

std::array<std::vector<std::string>, 2> SpellingsOfYesNo(std::string_view instructions) {
  std::array<std::vector<std::string>, 2> spellings = {SpellingsOfText("yes"),
                                                       SpellingsOfText("no")};
  for (const YesNo& pair : kYesNo) {
    if (!Names(instructions, pair.yes) || !Names(instructions, pair.no)) continue;
    for (std::string& text : SpellingsOfText(pair.yes)) AddNew(std::move(text), &spellings[0]);
    for (std::string& text : SpellingsOfText(pair.no)) AddNew(std::move(text), &spellings[1]);
  }
  return spellings;
}

Status CheckOptionTexts(const DecisionQuestion& question) {
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < question.options.size(); ++i) {
    const std::string_view text = TrimmedOption(question.options[i].text());
    if (text.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("option {} has no text but white space: give it a text", i));
    }
    for (size_t j = 0; j < i; ++j) {
      if (texts[j] != text) continue;
      return Status(
          StatusCode::kInvalidArgument,
          fmt::format("options {} and {} are the same text, \"{}\": all must differ", j, i, text));
    }
    texts.push_back(text);
  }
  return Status::Ok();
}

}  // namespace skein
