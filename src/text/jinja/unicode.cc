#include "text/jinja/unicode.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/generated/unicode_tables.h"
#include "text/unicode/utf8.h"

namespace skein::jinja {
namespace {

// The run that contains `code_point`, or null. REQUIRES: `runs` is sorted.
template <typename Run, size_t n>
const Run* FindRun(const Run (&runs)[n], char32_t code_point) {
  const Run* after = std::upper_bound(std::begin(runs), std::end(runs), code_point,
                                      [](char32_t c, const Run& run) { return c < run.first; });
  if (after == std::begin(runs) || std::prev(after)->last < code_point) return nullptr;
  return std::prev(after);
}

template <size_t n>
bool AppendMapped(const CaseRun (&runs)[n], char32_t code_point, std::string* text) {
  const CaseRun* run = FindRun(runs, code_point);
  if (run == nullptr || (code_point - run->first) % static_cast<char32_t>(run->stride) != 0) {
    return false;
  }
  AppendUtf8(static_cast<char32_t>(static_cast<int32_t>(code_point) + run->delta), text);
  return true;
}

template <size_t n>
bool AppendExpanded(const CaseExpansion (&expansions)[n], char32_t code_point, std::string* text) {
  for (const CaseExpansion& expansion : expansions) {
    if (expansion.from != code_point) continue;
    text->append(expansion.to);
    return true;
  }
  return false;
}

}  // namespace

void AppendUpper(char32_t code_point, std::string* text) {
  if (!AppendMapped(kToUpper, code_point, text) &&
      !AppendExpanded(kUpperExpansions, code_point, text)) {
    AppendUtf8(code_point, text);
  }
}

void AppendLower(char32_t code_point, std::string* text) {
  if (!AppendMapped(kToLower, code_point, text) &&
      !AppendExpanded(kLowerExpansions, code_point, text)) {
    AppendUtf8(code_point, text);
  }
}

bool IsPrintable(char32_t code_point) { return FindRun(kNotPrintable, code_point) == nullptr; }

}  // namespace skein::jinja
