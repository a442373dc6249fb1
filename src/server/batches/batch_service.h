#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "server/batches/batch_job.h"
#include "server/batches/batch_record.h"
#include "server/batches/file_store.h"
#include "server/http/http_message.h"
#include "server/json/json.h"
#include "server/local_routes.h"
#include "server/model_registry.h"

namespace skein {

// The batches of /v1/batches: requests in a file, computed behind all requests of clients. Batches
// and results lie in a directory and survive the process.
//
//   files/ID.data, files/ID.json   inputs and results
//   batches/ID.json                each batch
//   batches/ID.output, ID.errors   the results of a batch until it ends
//   lock                           held by the server that uses the directory
//
// One batch runs at a time, the oldest first. Its requests have the lowest priority. They take at
// most half of the sequences that the model decodes at once, and only one sequence while a client
// waits for an answer.
// Thread rule: any thread; Start and Stop once each.
class BatchService {
 public:
  static constexpr size_t kOpenBatchesMax = 100;
  // Beyond this number the oldest batch that has ended is forgotten.
  static constexpr size_t kBatchesMax = 10000;

  // Opens the directory `dir`, and makes it if it does not exist. Fails with kInvalidArgument
  // (param "batch-dir") if the directory cannot be used or another server uses it.
  static Result<std::unique_ptr<BatchService>> Open(const std::string& dir, int64_t max_bytes);
  ~BatchService();
  BatchService(const BatchService&) = delete;
  BatchService& operator=(const BatchService&) = delete;

  // Begins to compute batches. `num_live` returns the number of clients' requests that run now. The
  // objects that `models` point to must outlive this object.
  void Start(const ModelRegistry& models, std::function<int32_t()> num_live);
  // Begins no further request of a batch.
  void BeginDrain();
  // Ends running requests. They are computed again when a server next opens the directory.
  void Abort();
  void Stop();
  // The number of requests of batches that are being computed now.
  int32_t num_running() const { return num_running_; }

  FileStore& files() { return *files_; }
  // Creates a batch from the body of POST /v1/batches. Errors name the field.
  Result<Json> Create(const Json& body);
  Result<Json> Find(const std::string& id) const;
  Result<Json> Cancel(const std::string& id);
  std::vector<Json> List() const;  // the latest batch first

 private:
  struct Answered {
    size_t line = 0;
    HttpResponse response;
  };

  explicit BatchService(std::string dir) : dir_(std::move(dir)) {}

  Status Load();
  std::string PathOf(const std::string& id, const char* suffix) const;
  // Stores the batch; a failure is logged. REQUIRES: mutex_ is held.
  void Save(const BatchRecord& batch);
  void ForgetOldest();

  // The thread's main function: computes one batch after the other.
  void Run();
  // The id of the oldest batch that has not ended. Empty if there is none or if no batch may be
  // computed now. REQUIRES: mutex_ is held.
  std::string Next() const;
  void WorkOn(const std::string& id);
  // Whether the batch's files of results exist already: a crash came after its last line and before
  // the batch ended.
  bool HasResultFiles(const std::string& id) const;
  BatchStatus EndOf(const std::string& id) const;  // the status that ends work on its lines
  // Reads the input and the results that exist already. Returns false if the batch has failed.
  bool Prepare(const std::string& id, BatchJob* job);
  // Computes lines until all are done, or until no further line may begin. No line runs when it
  // returns. Fails if results cannot be written.
  Status Compute(const std::string& id, BatchJob* job);
  void Submit(const std::string& endpoint, BatchJob* job);
  // Writes the results of the answers that have come. Returns true if the server had no room for
  // one of the requests.
  Result<bool> TakeAnswers(const std::string& id, BatchJob* job);
  int32_t MayRun() const;
  // Ends the batch, with the results that it has.
  void Finish(const std::string& id, BatchStatus status, Json errors);

  const std::string dir_;
  int lock_fd_ = -1;
  std::unique_ptr<FileStore> files_;
  std::unique_ptr<LocalRoutes> routes_;
  std::function<int32_t()> num_live_;
  int32_t max_running_ = 1;
  std::atomic<int32_t> num_running_{0};

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<std::string, BatchRecord> batches_;
  std::string current_;  // the batch that is being computed; empty: none
  int64_t next_order_ = 0;
  std::deque<Answered> answered_;
  bool draining_ = false;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace skein
