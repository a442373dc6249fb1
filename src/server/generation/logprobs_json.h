#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "server/json/json.h"
#include "skein/request.h"
#include "text/tokenizer.h"

namespace skein {

// A prompt that its answer repeats.
struct EchoedPrompt {
  std::span<const TokenId> ids;
  std::span<const PromptLogprob> logprobs;  // for some positions of the prompt, ascending
  std::string_view text;
};

// Makes {tokens, token_logprobs, top_logprobs, text_offset} of completions, for `prompt` (unless it
// is null) and then for `tokens`. Positions of the prompt without a log-probability get null.
// Besides each token itself and tokens that the request named, at most num_top likely tokens are
// listed. `*text_offset` counts characters; it is moved behind these tokens. With
// skip_special_tokens, special tokens have no text. A token that is no whole character is spelt
// "bytes:\xe2\x82"; with as_ids every token is spelt "token_id:N".
Json CompletionLogprobs(const Tokenizer& tokenizer, const EchoedPrompt* prompt,
                        const std::vector<OutputToken>& tokens, int32_t num_top, bool as_ids,
                        bool skip_special_tokens, int64_t* text_offset);

// Makes [null | {"id": {logprob, rank, decoded_token}}] for a prompt of num_tokens tokens. Each
// entry lists the prompt's own token first, then at most num_top likely ones.
Json PromptLogprobsJson(const Tokenizer& tokenizer, size_t num_tokens,
                        std::span<const PromptLogprob> logprobs, int32_t num_top);

// Makes {content: [{token, logprob, bytes, top_logprobs}]} of chat completions.
Json ChatLogprobs(const Tokenizer& tokenizer, const std::vector<OutputToken>& tokens, bool as_ids);

}  // namespace skein
