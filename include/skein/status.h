#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace skein {

// The reason for which an operation failed. The server maps each code to one HTTP status
// (docs/ARCHITECTURE.md).
enum class StatusCode {
  kOk,
  kInvalidArgument,    // 400: the input breaks a rule; `param` names the field
  kNotFound,           // 404: no such model, file or route
  kTooLarge,           // 413: the input exceeds a byte limit
  kResourceExhausted,  // 429: a bounded queue is full; try again later
  kUnavailable,        // 503: loading, draining or shut down
  kUnsupported,        // the input is well-formed but needs a missing feature; the message names it
  kInternal,           // 500: a bug in Skein
};

// The outcome of an operation on input or environment. A message says what was wrong, with the
// value, and what is allowed. `param` names the field at fault, or is empty.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, std::string param = {})
      : code_(code), message_(std::move(message)), param_(std::move(param)) {}

  static Status Ok() { return {}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& param() const { return param_; }
  // With kResourceExhausted: the seconds after which the same request may succeed. 0: not known.
  int64_t retry_after_s() const { return retry_after_s_; }
  Status& RetryAfter(int64_t seconds) {
    retry_after_s_ = seconds;
    return *this;
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::string param_;
  int64_t retry_after_s_ = 0;
};

}  // namespace skein
