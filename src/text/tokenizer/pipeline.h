#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer/json/tokenizer_json.h"

namespace skein {

// Follows the steps of the reference from text to tokens, and keeps the alignment at each step. It
// is exact for all supported components and gives the offsets. It is slower than the paths for
// single models, which are tested against it. Immutable.
class Pipeline {
 public:
  // `parts` must outlive the pipeline.
  explicit Pipeline(const TokenizerParts* parts);

  // Appends the ids of `text` (valid UTF-8), without special tokens.
  Status AppendIds(std::string_view text, const SpecialAsText& as_text,
                   std::vector<TokenId>* ids) const;

  // Implements Tokenizer::EncodeFull. Without offsets, ids come from tokenizer.Encode.
  Status EncodeFull(const Tokenizer& tokenizer, const EncodeInput& input,
                    const EncodeOptions& options, Encoding* encoding) const;

 private:
  struct Token {
    TokenId id;
    TokenOffsets offsets;         // in bytes of the input
    uint32_t num_leading_spaces;  // characters that trimming may remove from the offsets
    uint32_t num_trailing_spaces;
  };

  Status Run(std::string_view text, const SpecialAsText& as_text, std::vector<Token>* tokens) const;
  Status RunSegment(AlignedText segment, const SpecialAsText& as_text,
                    std::vector<Token>* tokens) const;
  void AddFound(const AlignedText& text, TokenId id, std::vector<Token>* tokens) const;
  void CountSpaces(std::string_view spelling, Token* token) const;
  Status EncodeOne(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options,
                   std::vector<Token>* tokens) const;
  void TrimOffsets(bool is_second, bool special, std::vector<Token>* tokens) const;

  const TokenizerParts& parts_;
  std::unique_ptr<const Model> bpe_pieces_;  // set if the model is BPE
  const Model& model_;
};

}  // namespace skein
