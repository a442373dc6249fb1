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
std::string BatchEndpoints();  // the routes as errors list them

// An error of an input file.
struct BatchLineError {
  size_t line = 0;  // from 1 on; 0: an error of the whole file
  std::string message;
  std::string param;
};

// The lines of a batch, and the files to which its results are appended, one complete line each. A
// line is done once its result is in a file. So a job that is opened again after a crash goes on
// with the lines that have no result yet. Not thread-safe.
class BatchJob {
 public:
  // Reads the input, which has {"custom_id", "method": "POST", "url": `endpoint`, "body"} on each
  // line. Returns the errors of the input, at most 20.
  std::vector<BatchLineError> ReadInput(std::string input, const std::string& endpoint);
  // Opens the files of results. An earlier job of the same input may have made them already.
  Status OpenResults(const std::string& output_path, const std::string& error_path);

  size_t num_lines() const { return lines_.size(); }
  int64_t num_completed() const { return num_completed_; }
  int64_t num_failed() const { return num_failed_; }
  // Whether lines are left to be computed. TakeNext returns them in order.
  bool has_next() const { return !pending_.empty(); }
  size_t TakeNext();
  // Puts back a line that was not answered: it is the next line again.
  void PutBack(size_t line) { pending_.push_front(line); }

  // The body of the line's request with the lowest priority and without deadlines, so that requests
  // of clients go first. Fails if the body asks for something that a batch cannot give.
  Result<std::string> BodyOf(size_t line) const;
  // Appends the result of the line. Fails if the result cannot be written.
  Status AddResult(size_t line, const HttpResponse& response);
  Status Sync();

 private:
  struct Line {
    std::string custom_id;
    std::string_view text;  // a view of input_
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
