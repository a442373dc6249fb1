#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/generation/generation_session.h"
#include "server/http/http_message.h"
#include "server/json/json.h"
#include "server/reasoning/answer_parser.h"
#include "server/reasoning/reasoning_counter.h"

namespace skein {

// One choice of a growing answer. In a stream, ChoiceState holds only what the latest delta added.
struct ChoiceState {
  int32_t index = 0;  // index in the answer: prompt * n + sample
  std::string text;
  std::string_view echo;  // the prompt, if the text begins with it
  std::vector<OutputToken> tokens;
  std::optional<FinishReason> finish;
  StopReason stop_reason;
  const std::vector<TokenId>* prompt_ids = nullptr;
  const std::vector<PromptLogprob>* prompt_logprobs =
      nullptr;              // log-probabilities of the request's prompt
  int64_t text_offset = 0;  // characters of the answer before tokens[0]; updated by the format
  // Finds reasoning and tool calls in the text; nullopt: all text is content.
  std::optional<AnswerParser> parser;
  std::optional<ReasoningCounter> reasoning;  // nullopt: its tokens are not counted
  bool started = false;  // a chunk of the choice has been written; set by the format
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
  std::optional<int64_t> reasoning_tokens;  // among completion_tokens; nullopt: not counted
  TimeUs ttft_us = 0;                       // from the first request's arrival to the first token
  // From the first request's arrival to the end, or as far as the end is known.
  TimeUs total_us = 0;
};

// The form of an answer on the wire, in which alone the API dialects differ. Used on one strand.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;
  // Makes the whole answer.
  virtual Json Answer(std::vector<ChoiceState>* choices, const Usage& usage) = 0;
  // Appends the events of a stream for the content of `state`, and clears this content.
  virtual void AppendEvents(ChoiceState* state, const std::function<Usage()>& usage,
                            std::string* events) = 0;
  // Appends the events that follow the end of the last choice.
  virtual void AppendEnd(const Usage& usage, std::string* events) = 0;
  // Makes the head of a stream. The default is that of server-sent events.
  virtual HttpResponse StreamHead() const;
  // Makes the answer of a request that fails; in a stream that fails, it comes last.
  virtual HttpResponse Failure(const Status& status) const;
  virtual std::string FailureEvents(const Status& status) const;
};

// Takes the new text of a chat's answer out of `state` and splits it into reasoning, content and
// tool calls.
AnswerPiece TakePiece(ChoiceState* state);

// Whether the choice has called a tool so far.
bool HasCalls(const ChoiceState& state);

// One server-sent event; `name` may be empty.
std::string Event(const Json& json, std::string_view name = {});

Json UsageJson(const Usage& usage);
// "stop", "length" or "tool_calls"; null while the choice goes on.
Json FinishReasonJson(const ChoiceState& state);
Json StopReasonJson(const StopReason& reason);

// Makes a unique id such as "cmpl-...", from 64 random bits.
std::string MakeAnswerId(const char* prefix, uint64_t random);
int64_t UnixSeconds();

}  // namespace skein
