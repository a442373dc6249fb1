#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

using Pattern = StopPatterns::Pattern;

// The length of the longest prefix of the pattern with which the text ends after `c` is appended.
// `state` is this length before `c`.
size_t Advance(const Pattern& pattern, char c, size_t state) {
  while (state > 0 && c != pattern.text[state]) state = pattern.failure[state - 1];
  return c == pattern.text[state] ? state + 1 : state;
}

}  // namespace

StopPatterns::StopPatterns(std::vector<std::string> stops) {
  std::vector<Pattern> patterns;
  for (size_t index = 0; index < stops.size(); ++index) {
    if (stops[index].empty()) continue;
    Pattern pattern{index, std::move(stops[index]), {}};
    pattern.failure.assign(pattern.text.size(), 0);
    size_t border = 0;
    for (size_t i = 1; i < pattern.text.size(); ++i) {
      while (border > 0 && pattern.text[i] != pattern.text[border]) {
        border = pattern.failure[border - 1];
      }
      if (pattern.text[i] == pattern.text[border]) ++border;
      pattern.failure[i] = border;
    }
    patterns.push_back(std::move(pattern));
  }
  if (!patterns.empty()) {
    patterns_ = std::make_shared<const std::vector<Pattern>>(std::move(patterns));
  }
}

const std::vector<Pattern>& StopPatterns::patterns() const {
  static const std::vector<Pattern> kNone;
  return patterns_ != nullptr ? *patterns_ : kNone;
}

const std::string& StopPatterns::operator[](size_t index) const {
  const auto found = std::ranges::find(patterns(), index, &Pattern::index);
  SKEIN_CHECK(found != patterns().end());
  return found->text;
}

StopMatcher::StopMatcher(StopPatterns stops, bool include_stop_str_in_output)
    : stops_(std::move(stops)),
      states_(stops_.patterns().size(), 0),
      include_(include_stop_str_in_output) {}

std::string StopMatcher::Push(std::string_view piece, bool may_end) {
  if (matched_) return {};
  const std::vector<Pattern>& patterns = stops_.patterns();
  for (const char c : piece) {
    held_.push_back(c);
    const Pattern* match = nullptr;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const Pattern& pattern = patterns[i];
      states_[i] = Advance(pattern, c, states_[i]);
      if (states_[i] < pattern.text.size()) continue;
      if (!may_end) {
        states_[i] = pattern.failure.back();
      } else if (match == nullptr || match->text.size() < pattern.text.size()) {
        match = &pattern;
      }
    }
    if (match == nullptr) continue;
    matched_ = match->index;
    if (!include_) held_.resize(held_.size() - match->text.size());
    return std::exchange(held_, {});
  }
  size_t keep = 0;
  for (const size_t state : states_) keep = std::max(keep, state);
  // Characters are never cut. A stop string could begin inside a character only if it is not valid
  // UTF-8.
  size_t safe = held_.size() - keep;
  while (safe > 0 && safe < held_.size() && IsContinuationByte(held_[safe])) --safe;
  std::string out = held_.substr(0, safe);
  held_.erase(0, safe);
  return out;
}

std::string StopMatcher::Finish() { return std::exchange(held_, {}); }

}  // namespace skein
