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

// A sentencepiece normalizer as a tokenizer.json stores it: a double-array trie from byte strings
// to texts. Immutable.
class Precompiled {
 public:
  // `base64` encodes the length of the trie in bytes (u32, little endian), the trie (u32 each), and
  // the texts, each with a final zero byte. kInvalidArgument for any other content.
  static Result<Precompiled> Create(std::string_view base64);

  // Replaces text as the reference does. A grapheme cluster of fewer than six bytes becomes the
  // text of the shortest key that is a beginning of the cluster. Without such a key, and for longer
  // clusters, each character is replaced on its own.
  void Apply(AlignedText* text) const;

 private:
  Precompiled() = default;
  std::optional<std::string_view> Find(std::string_view chunk) const;

  std::vector<uint32_t> trie_;
  std::string texts_;
  Graphemes graphemes_;
};

}  // namespace skein
