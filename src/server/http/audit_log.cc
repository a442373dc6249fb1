#include "server/http/audit_log.h"

#include <fcntl.h>
#include <spdlog/fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "server/json/json.h"

namespace skein {
namespace {

// The time now in ISO 8601, UTC, with milliseconds.
std::string TimeOfDay() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z", fmt::gmtime(ms / 1000), ms % 1000);
}

class AuditedResponder final : public Responder {
 public:
  AuditedResponder(std::shared_ptr<Responder> responder, std::shared_ptr<AuditEntry> entry)
      : responder_(std::move(responder)), entry_(std::move(entry)) {}

  void Send(HttpResponse response) override {
    entry_->status = response.status;
    entry_->response_bytes = response.body.size();
    entry_->complete = true;
    responder_->Send(std::move(response));
  }
  void BeginStream(HttpResponse head) override {
    entry_->status = head.status;
    responder_->BeginStream(std::move(head));
  }
  void Write(std::string bytes) override {
    entry_->response_bytes += bytes.size();
    responder_->Write(std::move(bytes));
  }
  void End() override {
    entry_->complete = true;
    responder_->End();
  }
  void OnAbort(std::function<void(AbortReason)> callback) override {
    responder_->OnAbort(std::move(callback));
  }
  void Post(std::function<void()> task) override { responder_->Post(std::move(task)); }
  void PostWork(std::function<void()> task) override { responder_->PostWork(std::move(task)); }

 private:
  std::shared_ptr<Responder> responder_;
  std::shared_ptr<AuditEntry> entry_;
};

}  // namespace

Result<std::shared_ptr<AuditLog>> AuditLog::Open(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot write the audit log " + path + ": " + std::strerror(errno), "audit-log");
  }
  return std::shared_ptr<AuditLog>(new AuditLog(file));
}

AuditLog::~AuditLog() { close(file_); }

void AuditLog::Write(const AuditEntry& entry, int64_t now_us) {
  const Json line = {{"time", TimeOfDay()},
                     {"request_id", entry.request_id},
                     {"key", entry.key},
                     {"address", entry.address},
                     {"method", entry.method},
                     {"path", entry.path},
                     {"status", entry.status.load()},
                     {"complete", entry.complete.load()},
                     {"request_bytes", entry.request_bytes},
                     {"response_bytes", entry.response_bytes.load()},
                     {"ms", 1e-3 * static_cast<double>(now_us - entry.begin_us)}};
  const std::string text = line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  const bool written = write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written && !failing_.exchange(true)) {
    spdlog::error("the audit log cannot be written: {}", std::strerror(errno));
  }
  if (written) failing_ = false;
}

std::shared_ptr<Responder> Audited(std::shared_ptr<Responder> responder,
                                   std::shared_ptr<AuditEntry> entry) {
  return std::make_shared<AuditedResponder>(std::move(responder), std::move(entry));
}

}  // namespace skein
