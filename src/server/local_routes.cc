#include "server/local_routes.h"

#include <new>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/interrupt/work_pause.h"
#include "base/memory_reserve.h"
#include "server/json/api_error.h"
#include "server/routes.h"

namespace skein {

// The responder of one request. Its callbacks run on the routes' thread.
class LocalRoutes::LocalResponder final : public Responder,
                                          public std::enable_shared_from_this<LocalResponder> {
 public:
  LocalResponder(LocalRoutes* routes, std::function<void(HttpResponse)> done)
      : routes_(routes), done_(std::move(done)) {}

  void Send(HttpResponse response) override {
    routes_->Enqueue([self = shared_from_this(), response = std::move(response)]() mutable {
      self->routes_->open_.erase(self.get());
      self->on_abort_ = nullptr;
      self->done_(std::move(response));
    });
  }
  void BeginStream(HttpResponse) override { SKEIN_CHECK(false); }
  void Write(std::string) override { SKEIN_CHECK(false); }
  void End() override { SKEIN_CHECK(false); }
  void OnAbort(std::function<void(AbortReason)> callback) override {
    routes_->Enqueue([self = shared_from_this(), callback = std::move(callback)]() mutable {
      if (!self->routes_->open_.contains(self.get())) return;  // the request has been answered
      if (self->aborted_) return callback(AbortReason::kShutdown);
      self->on_abort_ = std::move(callback);
    });
  }
  void Post(std::function<void()> task) override { routes_->Enqueue(std::move(task)); }
  void PostWork(std::function<void()> task) override { Post(std::move(task)); }
  // Runs on the routes' thread.
  void Abort() {
    aborted_ = true;
    if (on_abort_) std::exchange(on_abort_, nullptr)(AbortReason::kShutdown);
  }

 private:
  LocalRoutes* const routes_;
  const std::function<void(HttpResponse)> done_;
  std::function<void(AbortReason)> on_abort_;
  bool aborted_ = false;
};

// Ends the work of a request that was posted before an abort.
class LocalRoutes::AbortPause final : public WorkPause {
 public:
  AbortPause(const std::atomic<uint64_t>* num_aborts, uint64_t num_before)
      : num_aborts_(*num_aborts), num_before_(num_before) {}
  bool GoOn() override { return num_aborts_ == num_before_; }

 private:
  const std::atomic<uint64_t>& num_aborts_;
  const uint64_t num_before_;
};

LocalRoutes::LocalRoutes(ModelRegistry models, std::function<uint64_t()> random_seed)
    : models_(std::move(models)) {
  metrics_.SetModels(models_);
  AddRoutes(&router_);
  context_ = {&config_, &models_, &metrics_, true, std::move(random_seed)};
  thread_ = std::thread([this] { Run(); });
}

LocalRoutes::~LocalRoutes() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LocalRoutes::Post(const std::string& path, std::string body,
                       std::function<void(HttpResponse)> done) {
  std::string allowed;
  const Route* route = router_.Find("POST", path, &allowed);
  SKEIN_CHECK(route != nullptr);
  auto request = std::make_shared<HttpRequest>();
  request->method = "POST";
  request->path = path;
  request->headers = {{"content-type", "application/json"}};
  request->body = std::move(body);
  auto responder = std::make_shared<LocalResponder>(this, std::move(done));
  Enqueue([this, route, num_aborts = num_aborts_.load(), request = std::move(request),
           responder = std::move(responder)] {
    open_.emplace(responder.get(), responder);
    AbortPause pause(&num_aborts_, num_aborts);
    const PauseScope scope(&pause);
    try {
      ServerContext context = context_;
      context.body_bytes = request->body.size();
      route->handler(context, request, responder);
    } catch (const std::bad_alloc&) {
      responder->Send(OutOfMemoryResponse());
    }
  });
}

bool LocalRoutes::Has(const std::string& path) const {
  std::string allowed;
  return router_.Find("POST", path, &allowed) != nullptr;
}

void LocalRoutes::Abort() {
  ++num_aborts_;
  Enqueue([this] {
    std::vector<std::shared_ptr<LocalResponder>> open;
    for (const auto& [key, responder] : open_) {
      if (auto alive = responder.lock()) open.push_back(std::move(alive));
    }
    for (const auto& responder : open) responder->Abort();
  });
}

void LocalRoutes::Enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void LocalRoutes::Run() {
  const ReserveScope no_failed_allocation;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace skein
