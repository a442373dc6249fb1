#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/model_registry.h"

namespace skein {

// The special tokens in a user's text: `<|im_end|>` in a mail that is to be judged does not end the
// mail. PlainText marks them, and EncodePrompt reads what is marked as text. So texts may be put
// into templates, whose own special tokens stay what they are:
//
//   template.before + PlainText(mail) + template.after  --EncodePrompt-->  ids
//
// A mark is a noncharacter of Unicode behind the first character of the token. One that a user
// sends is doubled, and comes out as it was sent.

// Marks the special tokens in `text`; returns it unchanged where `model` reads them as tokens.
std::string PlainText(const ModelEntry& model, std::string_view text);

// `text` for EncodePrompt, with its special tokens read as tokens.
std::string RawText(const ModelEntry& model, std::string_view text);

// Appends the ids of a prompt that may hold marked texts. kInvalidArgument, before any work is
// done, if its bytes cannot fit into `max_tokens` tokens; 0: any number.
Status EncodePrompt(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                    size_t max_tokens, std::vector<TokenId>* ids);

// The same for a prompt of unmarked texts, whose special tokens are tokens.
Status EncodeRawPrompt(const ModelEntry& model, std::string_view text, bool add_special_tokens,
                       size_t max_tokens, std::vector<TokenId>* ids);

// kInvalidArgument if a text of `num_bytes` is longer than `max_tokens` tokens of this tokenizer
// can be. Ok if its tokens have no known limit.
Status CheckTextBytes(const Tokenizer& tokenizer, size_t num_bytes, size_t max_tokens);

}  // namespace skein
