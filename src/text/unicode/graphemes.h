#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/unicode/normalizer_tables.h"

namespace skein {

// Finds extended grapheme clusters (Unicode Standard Annex 29) with the data of the reference.
// Immutable; takes 1.1 MB.
class Graphemes {
 public:
  Graphemes();

  // The end of the cluster that starts at `begin`. REQUIRES: valid UTF-8, begin < text.size().
  size_t ClusterEnd(std::string_view text, size_t begin) const;

 private:
  enum Conjunct : uint8_t { kConsonant = 0x20, kLinker = 0x40, kConjunctExtend = 0x80 };
  GraphemeClass ClassOf(uint32_t c) const;
  static bool Joins(GraphemeClass left, GraphemeClass right);

  std::vector<uint8_t> classes_;  // [0x110000]: GraphemeClass | Conjunct
};

}  // namespace skein
