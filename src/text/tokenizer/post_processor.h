#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "skein/request.h"

namespace skein {

// The post-processor of a tokenizer.json, flattened: what stands where when one text or a pair of
// texts is encoded, and how offsets are trimmed. Immutable once built.
class PostProcessor {
 public:
  enum class Sequence : uint8_t { kSpecial, kA, kB };
  // A text, or special tokens, in the order of the encoding.
  struct Part {
    Sequence sequence;
    int32_t type_id;
    std::vector<TokenId> ids;  // of kSpecial
  };
  using Encoding = std::vector<Part>;

  // White space that a token begins or ends with is no part of its offsets (ByteLevel, Roberta).
  struct Trim {
    bool add_prefix_space;  // one space at the start may be ours and is not trimmed
    // By sequence, A and B: in its encoding special tokens stand before it.
    std::array<bool, 2> is_behind_special;
  };

  // One text or two, one after the other; type 0 and type 1.
  PostProcessor();

  // The processors, in the order in which they apply. kUnsupported behind a template, but for
  // AddTrim, and for a template that does not use each text once.
  void AddTrim(bool add_prefix_space);
  Status AddBert(TokenId cls, TokenId sep);
  Status AddRoberta(TokenId cls, TokenId sep, bool trim_offsets, bool add_prefix_space);
  Status AddTemplate(const std::vector<Part>& single, const std::vector<Part>& pair);

  // What stands where; encodings are joined.
  std::vector<Part> Layout(bool is_pair) const;
  const std::vector<Trim>& trims() const { return trims_; }

 private:
  // By is_pair: the encodings in the hands of the next processor.
  std::array<std::vector<Encoding>, 2> encodings_;
  std::vector<Trim> trims_;
  bool has_template_ = false;
};

}  // namespace skein
