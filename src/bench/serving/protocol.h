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

// How the requests of a workload are sent to a server.
struct BenchRequestFormat {
  BenchEndpoint endpoint = BenchEndpoint::kCompletions;
  std::string model;
  bool ignore_eos = false;
  std::optional<double> temperature;
  std::optional<int64_t> seed;  // request i is sent with seed + i
  TokenRange tokens;
};

// Checks that the endpoint can take a request: chat takes text, so token ids are refused.
Status CheckBenchRequest(const WorkloadRequest& request, const BenchRequestFormat& format);

// Makes the JSON body of request number `index`, which asks for a stream with usage. Segments
// become token ids for completions and words for chat. REQUIRES: CheckBenchRequest is ok.
std::string MakeBenchRequestBody(const WorkloadRequest& request, int64_t index,
                                 const BenchRequestFormat& format);

// Reads a streamed answer piece by piece as it arrives, and records the times of its tokens. A
// piece counts as one with tokens if it carries text. A piece of a completion without text also
// counts if it does not end the answer (half a character), or if it ends an answer of which nothing
// came before. The first piece of a chat, which carries only the role, does not count. One thread.
class BenchAnswerReader {
 public:
  // `bytes` are those of the response body that arrived `elapsed_us` after the request was sent.
  void Feed(std::string_view bytes, TimeUs elapsed_us);

  // Called after the body: fills in the answer's part of *record.
  void Finish(LoadRecord* record);

 private:
  void ReadLine(std::string_view line, TimeUs elapsed_us);
  void ReadEvent(std::string_view data, TimeUs elapsed_us);

  std::string buffer_;  // an incomplete line
  std::string error_;
  bool ended_ = false;  // a finish reason or [DONE] has come
  std::vector<TimeUs> token_times_us_;
  TimeUs last_piece_us_ = 0;
  std::optional<int64_t> prompt_tokens_, output_tokens_;
  int64_t cached_tokens_ = 0;
};

// Makes one line that says why a server refused a request: "HTTP 429: " and the message of an error
// body, or the beginning of the body.
std::string DescribeHttpError(int status, std::string_view body);

}  // namespace skein
