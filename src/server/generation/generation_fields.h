#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/generation/generation_session.h"
#include "server/generation/grammar_fields.h"
#include "server/json/field_reader.h"
#include "server/model_registry.h"
#include "server/reasoning/answer_parser.h"
#include "skein/request.h"

namespace skein {

// The fields that completions and chat completions have in common.
struct GenerationFields {
  // Without the prompt; num_logprobs and the default of max_tokens are not set yet.
  Request request;
  TextOptions text;  // without num_logprobs
  std::optional<int32_t> max_tokens;
  bool stream = false;
  bool include_usage = false;           // stream_options
  bool continuous_usage_stats = false;  // stream_options
  GrammarField constraint;              // not compiled yet
  AnswerParsing parsing;                // of a chat's answer
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  // The prompt keeps this number of last tokens; -1: as many as leave room for the answer.
  std::optional<int32_t> truncate_prompt_tokens;
  // The number of likely tokens to show at each position of the prompt, besides the prompt's own
  // token. `request` tells the engine as much of this as it needs.
  std::optional<int32_t> prompt_logprobs;
};

// Reads the fields. Errors, and fields that need missing features, go to reader->status(). `seed`
// is used if the request has none.
GenerationFields ReadGenerationFields(FieldReader* reader, const ModelEntry& model, uint64_t seed);

// Compiles the constraint, if there is one. Errors go to reader->status().
void Constrain(FieldReader* reader, const ModelEntry& model, GenerationFields* fields);

// The number of tokens of the longest answer that a constraint of the request allows; 0: there is
// no constraint.
int32_t LongestChoice(const Request& request);

// The most tokens that a prompt may have: EncodePrompt refuses longer ones before it encodes them.
// 0: no limit, since the request wants its prompt truncated.
size_t MaxPromptTokens(const ModelEntry& model, const GenerationFields& fields);

// Truncates the prompt as requested, then checks that it leaves room for an answer. `param` names
// the field of the prompt.
Status FitPrompt(const ModelEntry& model, const GenerationFields& fields, const std::string& param,
                 std::vector<TokenId>* prompt);

}  // namespace skein
