#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode/utf8.h"

namespace skein {

// One character of a transformed text, and its relation to the characters of the old text:
//   0    it replaces the next old character
//   > 0  it is new, and stands for the same part of the original as the character before it
//   -n   it replaces the next old character, and the n old characters after that one are removed
struct CharChange {
  uint32_t code_point;
  int32_t change;
};

// A range of bytes of the original text.
struct OriginalSpan {
  uint32_t begin, end;
};

// A text on its way through normalizer and pre-tokenizer. Each of its bytes has a record of the
// part of the original that it stands for. It follows the reference (NormalizedString) in corner
// cases, because some of them change the tokens. Texts of at most 4 GiB.
class AlignedText {
 public:
  // `original`: valid UTF-8.
  explicit AlignedText(std::string_view original);

  const std::string& text() const { return text_; }
  // The beginning of the part of the original that this text or slice stands for.
  uint32_t original_begin() const { return begin_; }
  // The part of the original that the bytes [begin, end) of text() stand for.
  OriginalSpan ToOriginal(size_t begin, size_t end) const;

  // REQUIRES: begin < end <= text().size(), on character boundaries.
  AlignedText Slice(size_t begin, size_t end) const;

  // Replaces the text by `chars`. The first `num_removed` characters of the old text are removed.
  void Transform(std::span<const CharChange> chars, size_t num_removed = 0);
  // Replaces each range of bytes by `content`. The ranges ascend, and none is empty.
  void Replace(const std::vector<std::pair<size_t, size_t>>& ranges, std::string_view content);
  // Puts `prefix` before the text unless the text is empty.
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
  // Replaces every character c by `map(c)`.
  template <typename Map>
  void MapChars(Map map) {
    std::vector<CharChange> chars;
    for (size_t pos = 0; pos < text_.size();) chars.push_back({map(NextCodePoint(text_, &pos)), 0});
    Transform(chars);
  }

 private:
  AlignedText() = default;
  // The bytes of the text that a transformation of the whole original changes. Returns false if
  // there are none.
  bool WholeRange(size_t* begin, size_t* end) const;

  std::string text_;
  std::vector<OriginalSpan> spans_;  // positions in the whole original
  uint32_t begin_ = 0;               // position in the original
  uint32_t length_ = 0;              // of the original's part
};

}  // namespace skein
