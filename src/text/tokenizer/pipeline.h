#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer/json/tokenizer_json.h"

namespace skein {

// The reference's own way from text to tokens, with the alignment of every step: exact for all
// that is supported, and what offsets come from. Slower than the paths for single models, which
// are tested against it. Immutable.
class Pipeline {
 public:
  // `parts` must outlive the pipeline.
  explicit Pipeline(const TokenizerParts* parts);

  // Appends the ids of `text` (valid UTF-8), without special tokens.
  Status AppendIds(std::string_view text, std::vector<TokenId>* ids) const;

  // Tokenizer::EncodeFull. Ids come from tokenizer.Encode where no offsets are asked for.
  Status EncodeFull(const Tokenizer& tokenizer, const EncodeInput& input,
                    const EncodeOptions& options, Encoding* encoding) const;

 private:
  struct Token {
    TokenId id;
    TokenOffsets offsets;         // bytes of the input
    uint32_t num_leading_spaces;  // characters that trimming may take from the offsets
    uint32_t num_trailing_spaces;
  };

  Status Run(std::string_view text, std::vector<Token>* tokens) const;
  Status RunSegment(AlignedText segment, std::vector<Token>* tokens) const;
  void AddFound(const AlignedText& text, TokenId id, std::vector<Token>* tokens) const;
  void CountSpaces(std::string_view spelling, Token* token) const;
  Status EncodeOne(const Tokenizer& tokenizer, std::string_view text, bool with_offsets,
                   std::vector<Token>* tokens) const;
  void TrimOffsets(bool is_second, bool special, std::vector<Token>* tokens) const;

  const TokenizerParts& parts_;
  std::unique_ptr<const Model> bpe_pieces_;  // if the model is BPE
  const Model& model_;
};

}  // namespace skein
