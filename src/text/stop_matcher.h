#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// Stop strings, prepared to be found. Immutable; a copy shares them.
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

// Finds stop strings in a text that comes in pieces, and says what of it may already be shown: all
// but an end that could be the beginning of a stop string. A piece costs time by its own length
// times the number of stop strings. One thread.
class StopMatcher {
 public:
  // With include_stop_str_in_output the stop string itself is part of the text.
  explicit StopMatcher(StopPatterns stops, bool include_stop_str_in_output = false);

  // The text that is safe to emit now. Of several matches the one that ends first wins, of those
  // the longest; one that ends in a piece that `may_end` not is none. Once matched, further pieces
  // give nothing.
  std::string Push(std::string_view piece, bool may_end = true);
  // The text held back; empty after a match.
  std::string Finish();

  // Which of `stops` has matched.
  std::optional<size_t> matched() const { return matched_; }

 private:
  StopPatterns stops_;
  std::vector<size_t> states_;  // of each pattern so many bytes end the text seen
  bool include_;
  std::string held_;  // seen, not emitted
  std::optional<size_t> matched_;
};

}  // namespace skein
