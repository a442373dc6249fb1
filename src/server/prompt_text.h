#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/model_registry.h"

namespace skein {

// Handles special tokens in a user's text: `<|im_end|>` in a mail that the model judges must not
// end the prompt's turn. PlainText marks such tokens, and EncodePrompt encodes marked tokens as
// plain text. So a user's text can be inserted into a template, whose own special tokens keep their
// meaning:
//
//   template.before + PlainText(mail) + template.after  --EncodePrompt-->  ids
//
// A mark is a noncharacter of Unicode, placed behind the first character of the token. A
// noncharacter that a user sends is doubled, and comes out unchanged.

// Marks the special tokens in `text`. Returns `text` unchanged if `model` reads a user's special
// tokens as tokens.
std::string PlainText(const ModelEntry& model, std::string_view text);

// Prepares `text` for EncodePrompt so that its special tokens are read as tokens.
std::string RawText(const ModelEntry& model, std::string_view text);

// Appends the token ids of a prompt that may contain marked texts. kInvalidArgument, before any
// work is done, if its bytes cannot fit into `max_tokens` tokens; 0: no limit.
Status EncodePrompt(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                    size_t max_tokens, std::vector<TokenId>* ids);

// EncodePrompt for a prompt of unmarked texts, whose special tokens are read as tokens.
Status EncodeRawPrompt(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                       size_t max_tokens, std::vector<TokenId>* ids);

// kInvalidArgument if a text of `num_bytes` bytes cannot fit into `max_tokens` tokens of this
// tokenizer. Ok if the length of its tokens has no known limit.
Status CheckTextBytes(const Tokenizer& tokenizer, size_t num_bytes, size_t max_tokens);

}  // namespace skein
