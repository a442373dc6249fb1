#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http/http_message.h"

namespace skein {

// A request for work and its answer, without their contents: neither texts nor keys.
struct AuditEntry {
  std::string request_id;
  std::string key;  // its name, or "#2" for the third of --api-keys; empty: no key is needed
  std::string address;
  std::string method;
  std::string path;
  size_t request_bytes = 0;               // of the body
  int64_t begin_us = 0;                   // of a steady clock
  std::atomic<int> status{0};             // 0: the client left before an answer
  std::atomic<size_t> response_bytes{0};  // of the body
  std::atomic<bool> complete{false};      // the connection got the whole answer
};

// A file of JSON lines, one line for each request for work. Each line is appended as a whole, so
// that log rotation may truncate the file in place. Thread-safe.
class AuditLog {
 public:
  // Opens the file to append to it, or creates it with read permission for its owner alone. Errors
  // name the path.
  static Result<std::shared_ptr<AuditLog>> Open(const std::string& path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Appends the line of `entry`, which ended at `now_us` of the same clock. A line that cannot be
  // written is lost; the first failure of a series is logged as an error.
  void Write(const AuditEntry& entry, int64_t now_us);

 private:
  explicit AuditLog(int file) : file_(file) {}

  const int file_;
  std::atomic<bool> failing_{false};
};

// Wraps `responder` to record in `entry` what it sends.
std::shared_ptr<Responder> Audited(std::shared_ptr<Responder> responder,
                                   std::shared_ptr<AuditEntry> entry);

}  // namespace skein
