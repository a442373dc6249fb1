#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// Finds stop strings in a text that comes in pieces, and says what of it may already be shown: all
// but an end that could be the beginning of a stop string. A piece costs time by its own length
// times the number of stop strings. One thread.
class StopMatcher {
 public:
  // Empty strings among `stops` are ignored. With include_stop_str_in_output the stop string itself
  // is part of the text.
  explicit StopMatcher(std::vector<std::string> stops, bool include_stop_str_in_output = false);

  // The text that is safe to emit now. Of several matches the one that ends first wins, of those
  // the longest. Once matched, further pieces give nothing.
  std::string Push(std::string_view piece);
  // The text held back; empty after a match.
  std::string Finish();

  // Which of `stops` has matched.
  std::optional<size_t> matched() const { return matched_; }

 private:
  // One stop string with its failure function (Knuth, Morris and Pratt).
  struct Pattern {
    size_t index;  // in `stops`
    std::string text;
    std::vector<size_t> failure;  // [i]: the longest border of text[0, i]
    size_t state = 0;             // so many bytes of it end the text seen
  };
  static void Advance(char c, Pattern* pattern);

  std::vector<Pattern> patterns_;
  bool include_;
  std::string held_;  // seen, not emitted
  std::optional<size_t> matched_;
};

}  // namespace skein
