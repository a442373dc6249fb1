#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

// A text with which `skein bench tokenizer` measures.
struct TokenizerText {
  std::string name;  // kind, characters and, for long texts, "repeated" or "distinct"
  std::string text;
  size_t num_chars;  // in code points
};

// The texts of the benchmark, which are always the same. Their lengths in characters are those of
// the tables of the Prelude paper. There are two texts of each long length: one repeats a short
// text, as in the paper; the other consists of different sentences, with a fixed vocabulary and
// about one name or number per sentence that occurs only once.
std::vector<TokenizerText> TokenizerTexts();

// English prose of this length in characters, in which no sentence occurs twice. Each seed gives
// another text.
std::string DistinctProse(uint64_t seed, size_t num_chars);

}  // namespace skein
