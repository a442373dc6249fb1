#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "skein/request.h"

namespace skein {

// The post-processor of a tokenizer.json as a flat structure: the order of texts and special tokens
// for one text and for a pair, and the rule that trims offsets. Immutable once built.
class PostProcessor {
 public:
  enum class Sequence : uint8_t { kSpecial, kA, kB };
  // A text or special tokens, in the order of the encoding.
  struct Part {
    Sequence sequence;
    int32_t type_id;
    std::vector<TokenId> ids;  // set for kSpecial
  };
  using Encoding = std::vector<Part>;

  // Removes white space at the ends of tokens from their offsets (ByteLevel, Roberta).
  struct Trim {
    bool add_prefix_space;  // a space at the start may have been added and is not trimmed
    // [sequence A or B]: whether special tokens stand before the sequence in its encoding.
    std::array<bool, 2> is_behind_special;
  };

  // Joins one text (type 0) or two texts (types 0 and 1).
  PostProcessor();

  // Processors are added in the order in which they apply. kUnsupported for a template that does
  // not use each text once, and for anything except AddTrim after a template.
  void AddTrim(bool add_prefix_space);
  Status AddBert(TokenId cls, TokenId sep);
  Status AddRoberta(TokenId cls, TokenId sep, bool trim_offsets, bool add_prefix_space);
  Status AddTemplate(const std::vector<Part>& single, const std::vector<Part>& pair);

  // The order of the parts in the joined encoding.
  std::vector<Part> Layout(bool is_pair) const;
  const std::vector<Trim>& trims() const { return trims_; }

 private:
  // [is_pair]: the encodings that the next processor gets.
  std::array<std::vector<Encoding>, 2> encodings_;
  std::vector<Trim> trims_;
  bool has_template_ = false;
};

}  // namespace skein
