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

// The options that turn the tokens of an answer into text.
struct TextOptions {
  StopPatterns stop;
  std::vector<TokenId> stop_token_ids;  // set by the client; reported as stop_reason
  std::vector<TokenId> eos_token_ids;   // of the model; they end the text without a stop_reason
  bool include_stop_str = false;  // the text includes the stop string, or the stop token's text
  bool skip_special_tokens = true;
  int32_t min_tokens = 0;  // no stop string may end within this many tokens
};

// Besides the length, the reason for the end of a choice: none to report, a stop string, or a stop
// token.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

// The text and tokens that one output adds to one choice.
struct ChoiceDelta {
  int32_t sample = 0;
  std::string text;                 // only whole characters
  std::vector<OutputToken> tokens;  // may be ahead of the text
  std::optional<FinishReason> finish;
  StopReason stop_reason;
  Status status;  // not ok if and only if `finish` is kError
  // The engine still runs: the caller ends it with Engine::CancelSample.
  bool stopped_by_string = false;
};

// Turns the engine's outputs for one request into the texts of its choices. The texts hold only
// whole characters; stop strings are found and cut, stop tokens hidden. Knows nothing of HTTP. One
// thread.
class GenerationSession {
 public:
  // `tokenizer` must outlive the session. The end of `prompt` is decoded before the answer's first
  // tokens, so that a first word keeps its space.
  GenerationSession(const Tokenizer* tokenizer, TextOptions options, int32_t num_samples,
                    std::span<const TokenId> prompt);

  // Returns what this output adds; nullopt once the choice has finished (outputs may come after
  // CancelSample).
  std::optional<ChoiceDelta> Consume(RequestOutput output);

  // Whether all choices have finished. The engine may still report the end of choices that were
  // stopped.
  bool done() const { return num_unfinished_ == 0; }
  int32_t completion_tokens() const { return completion_tokens_; }  // sum over all choices
  int32_t longest_choice_tokens() const;
  int32_t cached_tokens() const { return cached_tokens_; }

 private:
  struct Sample {
    StreamDecoder decoder;
    StopMatcher matcher;
    std::string prompt_rest;  // text of the prompt that the decoder holds back
    int32_t num_tokens = 0;
    std::optional<TokenId> stop_token;  // the token of stop_token_ids that ended the choice
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
