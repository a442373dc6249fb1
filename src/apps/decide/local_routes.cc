#include "apps/decide/local_routes.h"

#include <utility>

#include "base/check.h"
#include "server/routes.h"

namespace skein {

// Runs on the routes' thread, as a connection's does on its strand.
class LocalRoutes::LocalResponder final : public Responder {
 public:
  LocalResponder(LocalRoutes* routes, std::function<void(HttpResponse)> done)
      : routes_(routes), done_(std::move(done)) {}

  void Send(HttpResponse response) override {
    routes_->Enqueue([done = done_, response = std::move(response)] { done(response); });
  }
  void BeginStream(HttpResponse) override { SKEIN_CHECK(false); }
  void Write(std::string) override { SKEIN_CHECK(false); }
  void End() override { SKEIN_CHECK(false); }
  void OnAbort(std::function<void(AbortReason)>) override {}  // nobody hangs up
  void Post(std::function<void()> task) override { routes_->Enqueue(std::move(task)); }
  void PostWork(std::function<void()> task) override { Post(std::move(task)); }

 private:
  LocalRoutes* const routes_;
  const std::function<void(HttpResponse)> done_;
};

LocalRoutes::LocalRoutes(ModelRegistry models) : models_(std::move(models)) {
  metrics_.SetModels(models_);
  AddRoutes(&router_);
  // A route's own random numbers are the same in every run.
  context_ = {&config_, &models_, &metrics_, true, [] { return uint64_t{0}; }};
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
  Enqueue([this, route, request = std::move(request), responder = std::move(responder)] {
    route->handler(context_, request, responder);
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
