#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode/utf8.h"

namespace skein {

// One character of a transformed text and what it does to the characters before the change:
//   0   it replaces the next of them
//   > 0 it is new; it stands for what the last character stood for
//   -n  it replaces the next of them, and the n behind that one are gone
struct CharChange {
  uint32_t code_point;
  int32_t change;
};

// Bytes of the original text.
struct OriginalSpan {
  uint32_t begin, end;
};

// A text on its way through normalizer and pre-tokenizer that remembers, for each of its bytes,
// which part of the original it stands for. It follows the reference (NormalizedString) in its
// corner cases, too, because some of them reach the tokens. Texts of at most 4 GiB.
class AlignedText {
 public:
  // `original`: valid UTF-8.
  explicit AlignedText(std::string_view original);

  const std::string& text() const { return text_; }
  // The part of the original that this text, or the slice it is, stands for.
  uint32_t original_begin() const { return begin_; }
  // What the bytes [begin, end) of text() stand for.
  OriginalSpan ToOriginal(size_t begin, size_t end) const;

  // REQUIRES: begin < end <= text().size(), on character boundaries.
  AlignedText Slice(size_t begin, size_t end) const;

  // The text becomes `chars`, whose first stands behind `num_removed` characters that are gone.
  void Transform(std::span<const CharChange> chars, size_t num_removed = 0);
  // Puts `content` in place of every range; they ascend, none is empty.
  void Replace(const std::vector<std::pair<size_t, size_t>>& ranges, std::string_view content);
  // Puts `prefix` before a text that is not empty.
  void Prepend(std::string_view prefix);

  // Drops the characters for which `keep` is false.
  template <typename Keep>
  void Filter(Keep keep) {
    std::vector<CharChange> chars;
    size_t num_first = 0;
    for (size_t pos = 0; pos < text_.size();) {
      const uint32_t c = NextCodePoint(text_, &pos);
      if (keep(c)) {
        chars.push_back({c, 0});
      } else if (chars.empty()) {
        ++num_first;
      } else {
        --chars.back().change;
      }
    }
    Transform(chars, num_first);
  }
  // Every character becomes `map` of it.
  template <typename Map>
  void MapChars(Map map) {
    std::vector<CharChange> chars;
    for (size_t pos = 0; pos < text_.size();) chars.push_back({map(NextCodePoint(text_, &pos)), 0});
    Transform(chars);
  }

 private:
  AlignedText() = default;
  // The bytes that a transformation of the whole original reaches; false if none.
  bool WholeRange(size_t* begin, size_t* end) const;

  std::string text_;
  std::vector<OriginalSpan> spans_;  // [text_.size()], in the whole original
  uint32_t begin_ = 0;               // of the original
  uint32_t length_ = 0;              // of it
};

}  // namespace skein
