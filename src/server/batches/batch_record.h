#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "server/json/json.h"

namespace skein {

//   validating --> in_progress --> finalizing --> completed
//       |               |
//       |          (Cancel) --> cancelling --> cancelled
//       +--> failed <---+ (the results cannot be written)
enum class BatchStatus {
  kValidating,
  kInProgress,
  kFinalizing,
  kCompleted,
  kCancelling,
  kCancelled,
  kFailed,
};

// A batch as the API describes it.
struct BatchRecord {
  std::string id;
  int64_t order = 0;  // batches are computed in this order
  BatchStatus status = BatchStatus::kValidating;
  std::string endpoint;
  std::string input_file_id;
  Json metadata;  // null, or an object
  Json errors;    // null, or {object: "list", data: [{code, message, param, line}]}
  // Unix times; 0: the batch has not reached that status.
  int64_t created_s = 0, in_progress_s = 0, finalizing_s = 0, completed_s = 0, failed_s = 0,
          cancelling_s = 0, cancelled_s = 0;
  std::string output_file_id, error_file_id;  // empty: there is no such file
  int64_t num_lines = 0, num_completed = 0, num_failed = 0;

  bool ended() const {
    return status == BatchStatus::kCompleted || status == BatchStatus::kCancelled ||
           status == BatchStatus::kFailed;
  }
};

// The form of OpenAI's API.
Json BatchJson(const BatchRecord& batch);
// The text that is stored: BatchJson and the order.
std::string BatchText(const BatchRecord& batch);
Result<BatchRecord> ParseBatchText(const std::string& text);

}  // namespace skein
