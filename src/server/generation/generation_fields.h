#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/generation/generation_session.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "skein/request.h"

namespace skein {

// The fields that completions and chat completions have in common.
struct GenerationFields {
  Request request;   // all but the prompt; num_logprobs and a default max_tokens not yet
  TextOptions text;  // all but num_logprobs
  std::optional<int32_t> max_tokens;
  bool stream = false;
  bool include_usage = false;           // stream_options
  bool continuous_usage_stats = false;  // stream_options
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  // Keep that many last tokens; -1: those that fit before the answer.
  std::optional<int32_t> truncate_prompt_tokens;
  // How many likely tokens to show at each position of the prompt beside its own; request has what
  // the engine must know of it.
  std::optional<int32_t> prompt_logprobs;
};

// Reads them; mistakes, and fields that need features Skein does not have, end up in
// reader->status(). `seed` is used when the request names none.
GenerationFields ReadGenerationFields(FieldReader* reader, const ModelEntry& model, uint64_t seed);

// Tokens of the longest answer that a constraint of the request allows; 0: there is none.
int32_t LongestChoice(const Request& request);

// Truncates as asked, then checks that the prompt leaves room for an answer. `param` names the
// field that the prompt came from.
Status FitPrompt(const ModelEntry& model, const GenerationFields& fields, const std::string& param,
                 std::vector<TokenId>* prompt);

}  // namespace skein
