#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "skein/request.h"

namespace skein {

// New output of one sample: a token, log-probabilities of its prompt, read values, or the sample's
// end.
struct SampleOutput {
  RequestId request = 0;
  int32_t sample = 0;
  std::optional<OutputToken> token;
  std::vector<PromptLogprob> prompt_logprobs;
  std::optional<ReadValues> read;
  std::optional<FinishReason> finish;
  Status status;  // not ok if and only if `finish` is kError
  int32_t cached_tokens = 0;
  RequestTimes times;
};

}  // namespace skein
