#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

// A text that `skein bench tokenizer` measures.
struct TokenizerText {
  std::string name;  // kind, characters and, of the long ones, "repeated" or "distinct"
  std::string text;
  size_t num_chars;  // code points
};

// The rows of the benchmark, always the same: the lengths in characters of the tables of the
// Prelude paper. The long ones stand there twice: one short text over and over, as the paper has
// it, and a text made of different sentences throughout (of a fixed vocabulary with about one name
// or number that occurs only once in each sentence).
std::vector<TokenizerText> TokenizerTexts();

// English prose of that many characters, without a sentence twice; another for each seed.
std::string DistinctProse(uint64_t seed, size_t num_chars);

}  // namespace skein
