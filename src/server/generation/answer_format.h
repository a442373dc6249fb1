#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/generation/generation_session.h"
#include "server/json/json.h"

namespace skein {

// One choice of a growing answer. A stream keeps only the content of the latest delta.
struct ChoiceState {
  int32_t index = 0;  // index in the answer: prompt * n + sample
  std::string text;
  std::string_view echo;  // the prompt at the beginning of the text
  std::vector<OutputToken> tokens;
  std::optional<FinishReason> finish;
  StopReason stop_reason;
  const std::vector<TokenId>* prompt_ids = nullptr;
  const std::vector<PromptLogprob>* prompt_logprobs =
      nullptr;              // log-probabilities of the request's prompt
  int64_t text_offset = 0;  // characters of the answer before tokens[0]; kept by the format
  bool started = false;     // a chunk of the choice has been written; kept by the format
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
};

// The form of an answer on the wire. It is the only difference between completions and chat
// completions. Used on one strand.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  // Makes {id, object, created, model} of a whole answer or of a chunk.
  virtual Json Envelope(bool chunk) const = 0;
  // Makes the whole choice.
  virtual Json Choice(ChoiceState* state) const = 0;
  // Appends the choice objects of the chunks for the content of `state`; none if it is empty.
  virtual void AppendChunks(ChoiceState* state, std::vector<Json>* chunks) const = 0;
  // Adds members beside the choices of a whole answer.
  virtual void Decorate(const std::vector<ChoiceState>& choices, Json* answer) const = 0;
};

Json UsageJson(const Usage& usage);
Json FinishReasonJson(const std::optional<FinishReason>& finish);
Json StopReasonJson(const StopReason& reason);

// Makes a unique id such as "cmpl-...", from 64 random bits.
std::string MakeAnswerId(const char* prefix, uint64_t random);
int64_t UnixSeconds();

}  // namespace skein
