#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/sim/workload.h"
#include "base/result.h"
#include "bench/serving/load_report.h"

namespace skein {

enum class BenchEndpoint { kCompletions, kChat };

// How the requests of a workload are put to a server.
struct BenchRequestFormat {
  BenchEndpoint endpoint = BenchEndpoint::kCompletions;
  std::string model;
  bool ignore_eos = false;
  std::optional<double> temperature;
  std::optional<int64_t> seed;  // request i is sent with seed + i
  TokenRange tokens;
};

// Whether a request can be put to the endpoint: chat takes text, so token ids are refused.
Status CheckBenchRequest(const WorkloadRequest& request, const BenchRequestFormat& format);

// The JSON body of request number `index`: streamed, with usage. Segments become token ids for
// completions and words for chat. REQUIRES: CheckBenchRequest is ok.
std::string MakeBenchRequestBody(const WorkloadRequest& request, int64_t index,
                                 const BenchRequestFormat& format);

// Reads a streamed answer piece by piece as it arrives and keeps the times of its tokens.
// A piece counts as one with tokens if it carries text, or if it is a completion's piece without
// text that does not end the answer (half a character), or if it ends an answer of which nothing
// came before. A chat's first piece, which carries only the role, does not. One thread.
class BenchAnswerReader {
 public:
  // `bytes` of the response body arrived `elapsed_us` after the request was sent.
  void Feed(std::string_view bytes, TimeUs elapsed_us);

  // After the body: fills in the answer's part of *record.
  void Finish(LoadRecord* record);

 private:
  void ReadLine(std::string_view line, TimeUs elapsed_us);
  void ReadEvent(std::string_view data, TimeUs elapsed_us);

  std::string buffer_;  // of an incomplete line
  std::string error_;
  bool ended_ = false;  // a finish reason or [DONE] came
  std::vector<TimeUs> token_times_us_;
  TimeUs last_piece_us_ = 0;
  std::optional<int64_t> prompt_tokens_, output_tokens_;
  int64_t cached_tokens_ = 0;
};

// One line that says why a server refused: "HTTP 429: " and the message of an error body, or the
// body's start.
std::string DescribeHttpError(int status, std::string_view body);

}  // namespace skein
