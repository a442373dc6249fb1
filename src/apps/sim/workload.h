#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"

namespace skein {

// A run of pseudo-random tokens. The token at position i depends only on the stream's name and i,
// so that two segments of the same stream share their first tokens.
struct WorkloadSegment {
  std::string stream;
  int64_t length = 0;
};

// The range [min_id, vocab) of generated token ids.
struct TokenRange {
  int32_t vocab = 512;
  int32_t min_id = 3;
};

// Appends the ids of a segment: min_id + SplitMix64(FNV-1a(stream) + i) % (vocab - min_id).
// REQUIRES: 0 <= min_id < vocab, length >= 0.
void ExpandSegment(std::string_view stream, int64_t length, const TokenRange& range,
                   std::vector<TokenId>* ids);
// Appends the segment as words of a fixed list of 64 words, separated by spaces.
void ExpandSegmentAsText(std::string_view stream, int64_t length, std::string* text);

// One request of a workload file. Exactly one of the three forms of the prompt is set.
struct WorkloadRequest {
  std::string id;
  std::string request_class;
  TimeUs arrival_us = 0;
  int32_t max_tokens = 16;
  std::optional<TimeUs> slo_ttft_us;
  std::optional<TimeUs> slo_tpot_us;
  int32_t priority = 0;
  std::string user;  // requests that share a prefix have the same user

  std::vector<WorkloadSegment> segments;
  std::vector<TokenId> prompt_token_ids;
  std::string prompt;

  bool has_text() const { return !prompt.empty(); }
  bool has_segments() const { return !segments.empty(); }
  // REQUIRES: !has_text().
  std::vector<TokenId> TokenIds(const TokenRange& range) const;
};

// Reads one line of a workload: a JSON object with max_tokens and the prompt, which is "segments"
// [[stream, length], ...], "prompt_token_ids" or "prompt". Optional fields are id, class,
// arrival_s, slo_ttft_ms or slo_ttft_s, slo_tpot_ms, priority, and user (otherwise prefix_group).
// Unknown fields are ignored. Errors name the field.
Result<WorkloadRequest> ParseWorkloadLine(std::string_view line);

// Reads a workload file, at most `max_requests` lines (0: all), in the order of the file. Empty
// lines are skipped. Errors name file and line.
Result<std::vector<WorkloadRequest>> LoadWorkload(const std::string& path, int64_t max_requests);

}  // namespace skein
