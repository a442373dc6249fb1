#pragma once

#include <cstdint>
#include <vector>

#include "server/json.h"
#include "skein/request.h"
#include "text/tokenizer.h"

namespace skein {

// {tokens, token_logprobs, top_logprobs, text_offset} of completions. `*text_offset` counts
// characters and is moved behind these tokens. A token that is no whole character is spelt
// "bytes:\xe2\x82"; with as_ids all are spelt "token_id:N".
Json CompletionLogprobs(const Tokenizer& tokenizer, const std::vector<OutputToken>& tokens,
                        bool as_ids, int64_t* text_offset);

// {content: [{token, logprob, bytes, top_logprobs}]} of chat completions.
Json ChatLogprobs(const Tokenizer& tokenizer, const std::vector<OutputToken>& tokens, bool as_ids);

}  // namespace skein
