#include "server/batches/batch_record.h"

#include <array>
#include <utility>

#include "server/json/field_reader.h"

namespace skein {
namespace {

constexpr std::array<std::pair<BatchStatus, const char*>, 7> kStatusNames = {
    {{BatchStatus::kValidating, "validating"},
     {BatchStatus::kInProgress, "in_progress"},
     {BatchStatus::kFinalizing, "finalizing"},
     {BatchStatus::kCompleted, "completed"},
     {BatchStatus::kCancelling, "cancelling"},
     {BatchStatus::kCancelled, "cancelled"},
     {BatchStatus::kFailed, "failed"}}};

constexpr std::array<std::pair<const char*, int64_t BatchRecord::*>, 7> kTimes = {
    {{"created_at", &BatchRecord::created_s},
     {"in_progress_at", &BatchRecord::in_progress_s},
     {"finalizing_at", &BatchRecord::finalizing_s},
     {"completed_at", &BatchRecord::completed_s},
     {"failed_at", &BatchRecord::failed_s},
     {"cancelling_at", &BatchRecord::cancelling_s},
     {"cancelled_at", &BatchRecord::cancelled_s}}};

constexpr std::array<std::pair<const char*, int64_t BatchRecord::*>, 3> kCounts = {
    {{"total", &BatchRecord::num_lines},
     {"completed", &BatchRecord::num_completed},
     {"failed", &BatchRecord::num_failed}}};

const char* StatusName(BatchStatus status) {
  for (const auto& [its_status, name] : kStatusNames) {
    if (its_status == status) return name;
  }
  return "failed";
}

Json IdOrNull(const std::string& id) { return id.empty() ? Json(nullptr) : Json(id); }

}  // namespace

Json BatchJson(const BatchRecord& batch) {
  Json json;
  json["id"] = batch.id;
  json["object"] = "batch";
  json["endpoint"] = batch.endpoint;
  json["errors"] = batch.errors;
  json["input_file_id"] = batch.input_file_id;
  json["completion_window"] = "24h";
  json["status"] = StatusName(batch.status);
  json["output_file_id"] = IdOrNull(batch.output_file_id);
  json["error_file_id"] = IdOrNull(batch.error_file_id);
  for (const auto& [name, member] : kTimes) {
    json[name] = batch.*member == 0 ? Json(nullptr) : Json(batch.*member);
  }
  json["expires_at"] = nullptr;
  json["expired_at"] = nullptr;
  for (const auto& [name, member] : kCounts) json["request_counts"][name] = batch.*member;
  json["metadata"] = batch.metadata;
  return json;
}

std::string BatchText(const BatchRecord& batch) {
  Json json = BatchJson(batch);
  json["order"] = batch.order;
  return DumpJson(json) + "\n";
}

Result<BatchRecord> ParseBatchText(const std::string& text) {
  const std::optional<Json> json = ParseJson(text);
  const Status malformed(StatusCode::kInvalidArgument, "describes no batch");
  if (!json || !json->is_object()) return malformed;
  FieldReader reader(*json);
  BatchRecord batch;
  batch.id = reader.String("id").value_or("");
  batch.order = reader.Int("order", 0, INT64_MAX).value_or(0);
  batch.endpoint = reader.String("endpoint").value_or("");
  batch.input_file_id = reader.String("input_file_id").value_or("");
  batch.output_file_id = reader.String("output_file_id").value_or("");
  batch.error_file_id = reader.String("error_file_id").value_or("");
  batch.metadata = json->value("metadata", Json(nullptr));
  batch.errors = json->value("errors", Json(nullptr));
  const std::string status = reader.String("status").value_or("");
  bool known = false;
  for (const auto& [its_status, name] : kStatusNames) {
    if (status != name) continue;
    batch.status = its_status;
    known = true;
  }
  for (const auto& [name, member] : kTimes) {
    batch.*member = reader.Int(name, 0, INT64_MAX).value_or(0);
  }
  if (const Json* counts = reader.Object("request_counts")) {
    FieldReader count(*counts);
    for (const auto& [name, member] : kCounts) {
      batch.*member = count.Int(name, 0, INT64_MAX).value_or(0);
    }
  }
  if (!reader.status().ok() || !known || batch.id.empty()) return malformed;
  return batch;
}

}  // namespace skein
