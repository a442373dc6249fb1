#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace skein {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool include_stop_str_in_output)
    : include_(include_stop_str_in_output) {
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
    patterns_.push_back(std::move(pattern));
  }
}

void StopMatcher::Advance(char c, Pattern* pattern) {
  while (pattern->state > 0 && c != pattern->text[pattern->state]) {
    pattern->state = pattern->failure[pattern->state - 1];
  }
  if (c == pattern->text[pattern->state]) ++pattern->state;
}

std::string StopMatcher::Push(std::string_view piece) {
  if (matched_) return {};
  for (const char c : piece) {
    held_.push_back(c);
    const Pattern* match = nullptr;
    for (Pattern& pattern : patterns_) {
      Advance(c, &pattern);
      if (pattern.state == pattern.text.size() &&
          (match == nullptr || match->text.size() < pattern.text.size())) {
        match = &pattern;
      }
    }
    if (match == nullptr) continue;
    matched_ = match->index;
    if (!include_) held_.resize(held_.size() - match->text.size());
    return std::exchange(held_, {});
  }
  size_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.state);
  // A stop string could begin inside a character only if it is no text; characters stay whole.
  size_t safe = held_.size() - keep;
  while (safe > 0 && safe < held_.size() && IsContinuationByte(held_[safe])) --safe;
  std::string out = held_.substr(0, safe);
  held_.erase(0, safe);
  return out;
}

std::string StopMatcher::Finish() { return std::exchange(held_, {}); }

}  // namespace skein
