#include "server/generation/generation_session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

// Enough tokens for a character that began in the prompt. They also keep the first word of an
// answer from losing its space, as it would at the beginning of a text.
constexpr size_t kContextTokens = 6;

bool Contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

GenerationSession::GenerationSession(const Tokenizer* tokenizer, TextOptions options,
                                     int32_t num_samples, std::span<const TokenId> prompt)
    : options_(std::move(options)), num_unfinished_(num_samples) {
  samples_.reserve(static_cast<size_t>(num_samples));
  const auto context = prompt.last(std::min(prompt.size(), kContextTokens));
  StreamDecoder prompt_decoder(tokenizer, options_.skip_special_tokens);
  for (TokenId id : context) (void)prompt_decoder.Push(id);
  const std::string prompt_rest = prompt_decoder.Finish();
  for (int32_t i = 0; i < num_samples; ++i) {
    samples_.push_back({StreamDecoder(tokenizer, options_.skip_special_tokens),
                        StopMatcher(options_.stop, options_.include_stop_str), prompt_rest});
    for (TokenId id : context) (void)samples_.back().decoder.Push(id);
  }
}

void GenerationSession::AddText(std::string piece, Sample* sample, ChoiceDelta* delta) const {
  if (!piece.empty() && !sample->prompt_rest.empty()) {
    // The decoder had held back the prompt's last bytes. If they come out changed now, the answer
    // has completed the character that they began. The whole character then belongs to the answer.
    if (piece.starts_with(sample->prompt_rest)) piece.erase(0, sample->prompt_rest.size());
    sample->prompt_rest.clear();
  }
  // A stop string may begin within the first min_tokens tokens, but must end after them.
  const bool may_end = options_.min_tokens == 0 || sample->num_tokens > options_.min_tokens;
  delta->text += sample->matcher.Push(piece, may_end);
  if (const auto index = sample->matcher.matched()) {
    delta->finish = FinishReason::kStop;
    delta->stop_reason = options_.stop[*index];
    delta->stopped_by_string = true;
  }
}

void GenerationSession::AddToken(const OutputToken& token, Sample* sample,
                                 ChoiceDelta* delta) const {
  ++sample->num_tokens;
  delta->tokens.push_back(token);
  const bool is_eos = Contains(options_.eos_token_ids, token.token);
  const bool is_stop = is_eos || Contains(options_.stop_token_ids, token.token);
  if (!is_stop || options_.include_stop_str) {
    AddText(sample->decoder.Push(token.token), sample, delta);
  }
  if (is_stop && !is_eos) sample->stop_token = token.token;
}

int32_t GenerationSession::longest_choice_tokens() const {
  return std::ranges::max_element(samples_, {}, &Sample::num_tokens)->num_tokens;
}

std::optional<ChoiceDelta> GenerationSession::Consume(RequestOutput output) {
  SKEIN_CHECK(output.sample >= 0 && output.sample < static_cast<int32_t>(samples_.size()));
  Sample& sample = samples_[static_cast<size_t>(output.sample)];
  cached_tokens_ = std::max(cached_tokens_, output.cached_tokens);
  if (sample.finished) return std::nullopt;

  ChoiceDelta delta;
  delta.sample = output.sample;
  for (size_t i = 0; i < output.tokens.size() && !delta.finish; ++i) {
    AddToken(output.tokens[i], &sample, &delta);
    ++completion_tokens_;
  }
  if (!delta.finish && output.finish) {
    AddText(sample.decoder.Finish(), &sample, &delta);
    if (!delta.finish) {
      delta.text += sample.matcher.Finish();
      delta.finish = output.finish;
      if (output.finish == FinishReason::kStop && sample.stop_token) {
        delta.stop_reason = *sample.stop_token;
      }
      delta.status = std::move(output.status);
    }
  }
  if (output.finish) delta.stopped_by_string = false;  // the engine has ended it already
  if (delta.finish) {
    sample.finished = true;
    --num_unfinished_;
  }
  return delta;
}

}  // namespace skein
