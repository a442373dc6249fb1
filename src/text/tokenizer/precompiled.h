#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/aligned_text.h"
#include "text/unicode/graphemes.h"

namespace skein {

// A sentencepiece normalizer as a tokenizer.json carries it: a double-array trie from byte strings
// to texts. Immutable.
class Precompiled {
 public:
  // `base64`: the length of the trie in bytes (u32, little endian), the trie (u32 each), the texts,
  // each ended by a zero byte. kInvalidArgument if it is not that.
  static Result<Precompiled> Create(std::string_view base64);

  // As the reference does it: a grapheme cluster of less than six bytes becomes the text of the
  // shortest key that it starts with; else each of its characters does so for itself.
  void Apply(AlignedText* text) const;

 private:
  Precompiled() = default;
  std::optional<std::string_view> Find(std::string_view chunk) const;

  std::vector<uint32_t> trie_;
  std::string texts_;
  Graphemes graphemes_;
};

}  // namespace skein
