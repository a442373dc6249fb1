#include "server/batches/batch_service.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <new>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "base/memory_reserve.h"
#include "server/batches/durable_file.h"
#include "server/json/api_error.h"
#include "server/json/field_reader.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr char kBatchPrefix[] = "batch_";
constexpr size_t kMetadataMax = 16;
constexpr std::chrono::milliseconds kLivePoll(20);     // while clients are served
constexpr std::chrono::milliseconds kRetryDelay(500);  // after the server had no room
constexpr std::chrono::seconds kMemoryPause(1);

// The marks in the names of a batch's two files of results.
constexpr char kOutputMark[] = "o";
constexpr char kErrorMark[] = "e";

// The id is derived from the batch's id, so that a repetition after a crash makes no second file.
std::string ResultFileId(const std::string& batch_id, const char* mark) {
  return "file-" + batch_id.substr(std::string_view(kBatchPrefix).size()) + mark;
}

Status CannotUse(const std::string& dir, const std::string& why) {
  return {StatusCode::kInvalidArgument, "batch-dir: " + dir + " cannot be used: " + why,
          "batch-dir"};
}

Status NoSuchBatch(const std::string& id) {
  return {StatusCode::kNotFound, "there is no batch " + id, "batch_id"};
}

Json ErrorList(const std::vector<BatchLineError>& errors) {
  Json list;
  list["object"] = "list";
  list["data"] = Json::array();
  for (const BatchLineError& error : errors) {
    Json entry;
    entry["code"] = "invalid_value";
    entry["message"] = error.message;
    entry["param"] = error.param.empty() ? Json(nullptr) : Json(error.param);
    entry["line"] = error.line == 0 ? Json(nullptr) : Json(error.line);
    list["data"].push_back(std::move(entry));
  }
  return list;
}

// Reads `metadata`, an object of texts; null if the request has none.
Json ReadMetadata(FieldReader* reader) {
  const Json* metadata = reader->Object("metadata");
  if (metadata == nullptr) return nullptr;
  const bool fits = metadata->size() <= kMetadataMax &&
                    std::ranges::all_of(*metadata, [](const Json& v) { return v.is_string(); });
  if (fits) return *metadata;
  reader->Refuse("metadata",
                 fmt::format("metadata must have at most {} members, all texts", kMetadataMax));
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<BatchService>> BatchService::Open(const std::string& dir,
                                                         int64_t max_bytes) {
  std::error_code error;
  fs::create_directories(dir + "/batches", error);
  if (error) return CannotUse(dir, error.message());
  std::unique_ptr<BatchService> service(new BatchService(dir));
  service->lock_fd_ = open((dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (service->lock_fd_ < 0) return CannotUse(dir, "no file can be made in it");
  if (flock(service->lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return CannotUse(dir, "another server uses it");
  }
  SKEIN_ASSIGN_OR_RETURN(service->files_, FileStore::Open(dir + "/files", max_bytes));
  SKEIN_RETURN_IF_ERROR(service->Load());
  return service;
}

BatchService::~BatchService() {
  Stop();
  if (lock_fd_ >= 0) close(lock_fd_);
}

Status BatchService::Load() {
  std::error_code error;
  fs::directory_iterator entries(dir_ + "/batches", error);
  if (error) return CannotUse(dir_, error.message());
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() != ".json") continue;
    SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(entry.path().string()));
    Result<BatchRecord> batch = ParseBatchText(text);
    if (!batch.ok() || batch->id != entry.path().stem()) {
      spdlog::warn("batch-dir: {} describes no batch; it is left alone", entry.path().string());
      continue;
    }
    next_order_ = std::max(next_order_, batch->order + 1);
    const std::string id = batch->id;
    batches_.emplace(id, std::move(batch).value());
  }
  return Status::Ok();
}

std::string BatchService::PathOf(const std::string& id, const char* suffix) const {
  return dir_ + "/batches/" + id + suffix;
}

void BatchService::Save(const BatchRecord& batch) {
  const Status saved = WriteDurably(PathOf(batch.id, ".json"), BatchText(batch));
  if (!saved.ok()) spdlog::error("{}", saved.message());
}

void BatchService::ForgetOldest() {
  if (batches_.size() < kBatchesMax) return;
  auto oldest = batches_.end();
  for (auto it = batches_.begin(); it != batches_.end(); ++it) {
    if (!it->second.ended()) continue;
    if (oldest == batches_.end() || it->second.order < oldest->second.order) oldest = it;
  }
  if (oldest == batches_.end()) return;
  std::error_code ignored;
  fs::remove(PathOf(oldest->first, ".json"), ignored);
  batches_.erase(oldest);
}

// --- The API -------------------------------------------------------------------------------------

Result<Json> BatchService::Create(const Json& body) {
  FieldReader reader(body);
  BatchRecord batch;
  batch.endpoint = reader.String("endpoint").value_or("");
  if (!IsBatchEndpoint(batch.endpoint)) {
    reader.RefuseValue("endpoint", "one of " + BatchEndpoints(), Json(batch.endpoint));
  }
  if (const std::string window = reader.String("completion_window").value_or("24h");
      window != "24h") {
    reader.RefuseValue("completion_window", "\"24h\"", Json(window));
  }
  batch.input_file_id = reader.String("input_file_id").value_or("");
  batch.metadata = ReadMetadata(&reader);
  SKEIN_RETURN_IF_ERROR(reader.status());
  const auto file = files_->Find(batch.input_file_id);
  if (!file || file->purpose != "batch") {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("input_file_id must be the id of a file with the purpose \"batch\", "
                              "got \"{}\"",
                              batch.input_file_id.substr(0, 80)),
                  "input_file_id");
  }
  batch.id = RandomId(kBatchPrefix);
  batch.created_s = std::time(nullptr);
  const std::lock_guard lock(mutex_);
  const auto num_open =
      std::ranges::count_if(batches_, [](const auto& entry) { return !entry.second.ended(); });
  if (static_cast<size_t>(num_open) >= kOpenBatchesMax) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{} batches wait or run, which is the most: wait for one to end",
                              kOpenBatchesMax));
  }
  ForgetOldest();
  batch.order = next_order_++;
  SKEIN_RETURN_IF_ERROR(WriteDurably(PathOf(batch.id, ".json"), BatchText(batch)));
  batches_.emplace(batch.id, batch);
  changed_.notify_all();
  return BatchJson(batch);
}

Result<Json> BatchService::Find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  if (found == batches_.end()) return NoSuchBatch(id);
  return BatchJson(found->second);
}

Result<Json> BatchService::Cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  if (found == batches_.end()) return NoSuchBatch(id);
  BatchRecord& batch = found->second;
  if (batch.ended() || batch.status == BatchStatus::kFinalizing) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the batch {} has ended: it cannot be cancelled", id), "batch_id");
  }
  if (batch.status == BatchStatus::kCancelling) return BatchJson(batch);
  const bool untouched = batch.status == BatchStatus::kValidating && current_ != id;
  batch.cancelling_s = std::time(nullptr);
  batch.status = BatchStatus::kCancelling;
  if (untouched) {
    batch.cancelled_s = batch.cancelling_s;
    batch.status = BatchStatus::kCancelled;
  }
  Save(batch);
  changed_.notify_all();
  return BatchJson(batch);
}

std::vector<Json> BatchService::List() const {
  std::vector<const BatchRecord*> order;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, batch] : batches_) order.push_back(&batch);
  std::ranges::sort(order, std::ranges::greater(), &BatchRecord::order);
  std::vector<Json> list;
  for (const BatchRecord* batch : order) list.push_back(BatchJson(*batch));
  return list;
}

// --- The thread ----------------------------------------------------------------------------------

void BatchService::Start(const ModelRegistry& models, std::function<int32_t()> num_live) {
  num_live_ = std::move(num_live);
  max_running_ = models.entries().front().engine->Limits().max_num_seqs;
  for (const ModelEntry& entry : models.entries()) {
    max_running_ = std::min(max_running_, entry.engine->Limits().max_num_seqs / 2);
  }
  max_running_ = std::max(1, max_running_);
  // Seeds that differ at every start, so that ids of answers and the samples of requests without a
  // seed differ.
  std::random_device device;
  routes_ = std::make_unique<LocalRoutes>(models,
                                          [next = (uint64_t{device()} << 32) | device()]() mutable {
                                            // Drawn by one thread only.
                                            return next += 0x9E3779B97F4A7C15;
                                          });
  thread_ = std::thread([this] { Run(); });
}

void BatchService::BeginDrain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  changed_.notify_all();
}

void BatchService::Abort() {
  BeginDrain();
  if (routes_ != nullptr) routes_->Abort();
}

void BatchService::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  Abort();
  thread_.join();
  routes_.reset();
}

std::string BatchService::Next() const {
  if (draining_) return {};
  const BatchRecord* next = nullptr;
  for (const auto& [id, batch] : batches_) {
    if (!batch.ended() && (next == nullptr || batch.order < next->order)) next = &batch;
  }
  return next == nullptr ? std::string() : next->id;
}

void BatchService::Run() {
  const ReserveScope no_failed_allocation;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    current_ = Next();
    if (current_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::string id = current_;
    lock.unlock();
    try {
      WorkOn(id);
    } catch (const std::bad_alloc&) {
      // It goes on from its files, as after the end of the process.
      std::this_thread::sleep_for(kMemoryPause);
    }
    lock.lock();
  }
}

void BatchService::WorkOn(const std::string& id) {
  if (HasResultFiles(id)) return Finish(id, EndOf(id), nullptr);
  BatchJob job;
  if (!Prepare(id, &job)) return;
  Status status = Compute(id, &job);
  bool cancelled = false, interrupted = false;
  {
    const std::lock_guard lock(mutex_);
    BatchRecord& batch = batches_.at(id);
    cancelled = batch.status == BatchStatus::kCancelling;
    interrupted = draining_ && !cancelled && job.has_next();
    if (status.ok() && !interrupted && !cancelled) {
      batch.status = BatchStatus::kFinalizing;
      batch.finalizing_s = std::time(nullptr);
    }
    Save(batch);
  }
  if (status.ok()) status = job.Sync();
  if (!status.ok()) {
    spdlog::error("the batch {} has failed: {}", id, status.message());
    return Finish(id, BatchStatus::kFailed, ErrorList({{0, status.message(), ""}}));
  }
  if (interrupted) return;
  Finish(id, cancelled ? BatchStatus::kCancelled : BatchStatus::kCompleted, nullptr);
}

bool BatchService::HasResultFiles(const std::string& id) const {
  return files_->Find(ResultFileId(id, kOutputMark)) || files_->Find(ResultFileId(id, kErrorMark));
}

BatchStatus BatchService::EndOf(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return batches_.at(id).status == BatchStatus::kCancelling ? BatchStatus::kCancelled
                                                            : BatchStatus::kCompleted;
}

bool BatchService::Prepare(const std::string& id, BatchJob* job) {
  std::string file_id, endpoint;
  {
    const std::lock_guard lock(mutex_);
    file_id = batches_.at(id).input_file_id;
    endpoint = batches_.at(id).endpoint;
  }
  std::vector<BatchLineError> errors;
  Result<std::string> input = files_->Read(file_id);
  if (!input.ok()) {
    errors.push_back({0, input.status().message(), "input_file_id"});
  } else {
    errors = job->ReadInput(std::move(input).value(), endpoint);
  }
  if (errors.empty()) {
    const Status opened = job->OpenResults(PathOf(id, ".output"), PathOf(id, ".errors"));
    if (!opened.ok()) errors.push_back({0, opened.message(), ""});
  }
  if (!errors.empty()) {
    Finish(id, BatchStatus::kFailed, ErrorList(errors));
    return false;
  }
  const std::lock_guard lock(mutex_);
  BatchRecord& batch = batches_.at(id);
  if (batch.status == BatchStatus::kValidating) batch.status = BatchStatus::kInProgress;
  if (batch.in_progress_s == 0) batch.in_progress_s = std::time(nullptr);
  batch.num_lines = static_cast<int64_t>(job->num_lines());
  batch.num_completed = job->num_completed();
  batch.num_failed = job->num_failed();
  Save(batch);
  return true;
}

int32_t BatchService::MayRun() const { return num_live_() > 0 ? 1 : max_running_; }

Status BatchService::Compute(const std::string& id, BatchJob* job) {
  Status failure;
  SteadyTime retry_at{};
  std::unique_lock lock(mutex_);
  const std::string endpoint = batches_.at(id).endpoint;
  while (true) {
    const bool goes_on = !draining_ && failure.ok() && job->has_next() &&
                         batches_.at(id).status != BatchStatus::kCancelling;
    if (!goes_on && num_running_ == 0) return failure;
    if (!answered_.empty()) {
      lock.unlock();
      Result<bool> full = TakeAnswers(id, job);
      lock.lock();
      if (!full.ok()) {
        failure = full.status();
      } else if (*full) {
        retry_at = std::chrono::steady_clock::now() + kRetryDelay;
      }
    } else if (!goes_on || num_running_ >= max_running_) {
      changed_.wait(lock);
    } else if (num_running_ >= MayRun() || std::chrono::steady_clock::now() < retry_at) {
      changed_.wait_for(lock, kLivePoll);
    } else {
      lock.unlock();
      Submit(endpoint, job);
      lock.lock();
    }
  }
}

void BatchService::Submit(const std::string& endpoint, BatchJob* job) {
  const size_t line = job->TakeNext();
  Result<std::string> body = job->BodyOf(line);
  const std::lock_guard lock(mutex_);
  if (draining_) return job->PutBack(line);
  ++num_running_;
  if (!body.ok()) {
    answered_.push_back({line, ErrorResponse(body.status())});
    return;
  }
  routes_->Post(endpoint, std::move(body).value(), [this, line](HttpResponse response) {
    const std::lock_guard answered(mutex_);
    answered_.push_back({line, std::move(response)});
    changed_.notify_all();
  });
}

Result<bool> BatchService::TakeAnswers(const std::string& id, BatchJob* job) {
  std::deque<Answered> answers;
  {
    const std::lock_guard lock(mutex_);
    answers.swap(answered_);
  }
  bool full = false;
  Status status;
  for (const Answered& answer : answers) {
    // The server is full or ends. The line itself is not at fault.
    const bool refused = answer.response.status == 429 || answer.response.status == 503;
    if (refused || !status.ok()) {
      job->PutBack(answer.line);
      full = true;
    } else {
      status = job->AddResult(answer.line, answer.response);
    }
  }
  const std::lock_guard lock(mutex_);
  num_running_ -= static_cast<int32_t>(answers.size());
  BatchRecord& batch = batches_.at(id);
  batch.num_completed = job->num_completed();
  batch.num_failed = job->num_failed();
  if (!status.ok()) return status;
  return full;
}

void BatchService::Finish(const std::string& id, BatchStatus status, Json errors) {
  const auto adopt = [&](const char* suffix, const char* mark, const char* name) -> std::string {
    const std::string path = PathOf(id, suffix);
    const std::string file_id = ResultFileId(id, mark);
    if (files_->Find(file_id)) return file_id;
    std::error_code error;
    const bool is_there = fs::exists(path, error);
    if (is_there && fs::file_size(path, error) == 0) {
      fs::remove(path, error);
      return {};
    }
    if (!is_there && !fs::exists(dir_ + "/files/" + file_id + ".data", error)) return {};
    const Status adopted = files_->Adopt(path, file_id, id + name);
    if (!adopted.ok()) spdlog::error("{}", adopted.message());
    return adopted.ok() ? file_id : std::string();
  };
  const std::string output = adopt(".output", kOutputMark, "_output.jsonl");
  const std::string failed = adopt(".errors", kErrorMark, "_error.jsonl");
  const std::lock_guard lock(mutex_);
  BatchRecord& batch = batches_.at(id);
  batch.output_file_id = output;
  batch.error_file_id = failed;
  batch.errors = std::move(errors);
  batch.status = status;
  const int64_t now_s = std::time(nullptr);
  if (status == BatchStatus::kCompleted) batch.completed_s = now_s;
  if (status == BatchStatus::kCancelled) batch.cancelled_s = now_s;
  if (status == BatchStatus::kFailed) batch.failed_s = now_s;
  Save(batch);
  current_.clear();
  spdlog::info("the batch {} has ended: {} of {} lines answered, {} failed", id,
               batch.num_completed, batch.num_lines, batch.num_failed);
}

}  // namespace skein
