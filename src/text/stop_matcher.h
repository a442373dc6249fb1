#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// Stop strings, prepared for the search. Immutable; copies share the strings.
class StopPatterns {
 public:
  StopPatterns() = default;
  // Empty strings are ignored; the others keep their index.
  StopPatterns(std::vector<std::string> stops);
  StopPatterns(std::initializer_list<std::string> stops)
      : StopPatterns(std::vector<std::string>(stops)) {}

  // One stop string with its failure function (Knuth, Morris and Pratt).
  struct Pattern {
    size_t index;  // in `stops`
    std::string text;
    std::vector<size_t> failure;  // [i]: the longest border of text[0, i]
  };
  const std::vector<Pattern>& patterns() const;
  // stops[index]. REQUIRES: not empty.
  const std::string& operator[](size_t index) const;

 private:
  std::shared_ptr<const std::vector<Pattern>> patterns_;  // null: none
};

// Finds stop strings in a text that arrives in pieces, and tells which part of the text may be
// shown: everything except an end that could begin a stop string. A piece costs time proportional
// to its length times the number of stop strings. One thread.
class StopMatcher {
 public:
  // If include_stop_str_in_output is set, the text that Push returns includes the stop string.
  explicit StopMatcher(StopPatterns stops, bool include_stop_str_in_output = false);

  // Returns the text that is safe to show now. The match that ends first wins; of matches that end
  // at the same place, the longest wins. Matches that end in a piece with `may_end` false do not
  // count. After a match, further pieces give no text.
  std::string Push(std::string_view piece, bool may_end = true);
  // Returns the text that is still held back; empty after a match.
  std::string Finish();

  // The index of the stop string that matched.
  std::optional<size_t> matched() const { return matched_; }

 private:
  StopPatterns stops_;
  std::vector<size_t> states_;  // [pattern]: the number of its first bytes with which the text ends
  bool include_;
  std::string held_;  // received, but not returned yet
  std::optional<size_t> matched_;
};

}  // namespace skein
