#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "skein/request.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace skein {

// How the tokens of an answer become text.
struct TextOptions {
  StopPatterns stop;
  std::vector<TokenId> stop_token_ids;  // asked for by the client: reported as stop_reason
  std::vector<TokenId> eos_token_ids;   // the model's own; end the text without a stop_reason
  bool include_stop_str = false;        // also: the text of a stop token
  bool skip_special_tokens = true;
  int32_t min_tokens = 0;  // stop strings are not looked for before that many
};

// What ended a choice beside its length: nothing to tell, a stop string, or a stop token.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

// What one output adds to one choice.
struct ChoiceDelta {
  int32_t sample = 0;
  std::string text;                 // whole characters
  std::vector<OutputToken> tokens;  // may run ahead of the text
  std::optional<FinishReason> finish;
  StopReason stop_reason;
  Status status;                   // not ok exactly with FinishReason::kError
  bool stopped_by_string = false;  // the engine still runs: end it with Engine::CancelSample
};

// Turns the engine's outputs of one request into the text of its choices: whole characters only,
// stop strings found and cut, stop tokens hidden. Knows nothing of HTTP. One thread.
class GenerationSession {
 public:
  // `tokenizer` must outlive the session. The end of `prompt` is context for detokenizing: a first
  // word keeps its space.
  GenerationSession(const Tokenizer* tokenizer, TextOptions options, int32_t num_samples,
                    std::span<const TokenId> prompt);

  // The delta of this output; nullopt once the choice has finished (outputs that crossed a
  // CancelSample on the way).
  std::optional<ChoiceDelta> Consume(RequestOutput output);

  // All choices have finished; the engine may still have to report that of stopped ones.
  bool done() const { return num_unfinished_ == 0; }
  int32_t completion_tokens() const { return completion_tokens_; }  // of all choices
  int32_t longest_choice_tokens() const;
  int32_t cached_tokens() const { return cached_tokens_; }

 private:
  struct Sample {
    StreamDecoder decoder;
    StopMatcher matcher;
    std::string prompt_rest;  // text of the prompt that the decoder still holds back
    int32_t num_tokens = 0;
    std::optional<TokenId> stop_token;  // of stop_token_ids, when it came
    bool finished = false;
  };

  void AddText(std::string piece, Sample* sample, ChoiceDelta* delta) const;
  void AddToken(const OutputToken& token, Sample* sample, ChoiceDelta* delta) const;

  TextOptions options_;
  std::vector<Sample> samples_;
  int32_t num_unfinished_;
  int32_t completion_tokens_ = 0;
  int32_t cached_tokens_ = 0;
};

}  // namespace skein
