#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/batches/durable_file.h"
#include "server/http/http_message.h"
#include "server/json/json.h"

namespace skein {

inline constexpr size_t kBatchLinesMax = 50000;

// The routes whose requests a batch may hold.
bool IsBatchEndpoint(std::string_view endpoint);
std::string BatchEndpoints();  // as errors list them

// An error of an input file.
struct BatchLineError {
  size_t line = 0;  // from 1 on; 0: of the file
  std::string message;
  std::string param;
};

// The lines of a batch, and the files that its results are appended to, one whole line each. A line
// is done once its result is there, so a job that is opened again goes on behind what a crash left.
// Not thread-safe.
class BatchJob {
 public:
  // Reads the input: {"custom_id", "method": "POST", "url": `endpoint`, "body"} a line. Returns
  // what is wrong with it, at most 20 entries.
  std::vector<BatchLineError> ReadInput(std::string input, const std::string& endpoint);
  // Opens the results, made by an earlier job of the same input or not at all yet.
  Status OpenResults(const std::string& output_path, const std::string& error_path);

  size_t num_lines() const { return lines_.size(); }
  int64_t num_completed() const { return num_completed_; }
  int64_t num_failed() const { return num_failed_; }
  // The lines to be computed, in their order.
  bool has_next() const { return !pending_.empty(); }
  size_t TakeNext();
  // The line was not answered: it is the next again.
  void PutBack(size_t line) { pending_.push_front(line); }

  // The body of the line's request as it is computed: behind all live requests, without deadlines.
  // Fails where the body wants what a batch cannot give.
  Result<std::string> BodyOf(size_t line) const;
  // Appends the line's result. Fails if it cannot be written.
  Status AddResult(size_t line, const HttpResponse& response);
  Status Sync();

 private:
  struct Line {
    std::string custom_id;
    std::string_view text;  // of input_
  };

  Status ReadResults(const std::string& path, std::vector<bool>* done, int64_t* num_results,
                     LineFile* file);

  std::string input_;
  std::vector<Line> lines_;
  std::deque<size_t> pending_;
  LineFile output_, errors_;
  int64_t num_completed_ = 0, num_failed_ = 0;
};

}  // namespace skein
