#include "server/http/http_server.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/memory_reserve.h"
#include "server/batches/batch_service.h"
#include "server/http/audit_log.h"
#include "server/http/caller_policy.h"
#include "server/http/connection.h"
#include "server/http/key_limits.h"
#include "server/http/request_pause.h"
#include "server/http/tls_files.h"
#include "server/http/work_queue.h"
#include "server/json/api_error.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/routes.h"

namespace skein {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The wait after file descriptors ran out: open connections must close first.
constexpr std::chrono::milliseconds kAcceptRetryDelay(50);
// Bodies up to this length are handled on the thread that received them: handling takes about as
// long as waking another thread.
constexpr size_t kShortBodyBytes = 4 << 10;
constexpr uint64_t kGoldenGamma = 0x9E3779B97F4A7C15;  // step of SplitMix64

// After a request with a body of at least this length, much free memory remains in the allocator.
constexpr size_t kTrimBodyBytes = 1 << 20;

// Returns free memory from the allocator to the system. Takes milliseconds.
void GiveMemoryBack() { malloc_trim(0); }

uint64_t TrueRandom() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

class HttpServer::Impl final : public ConnectionOwner {
 public:
  explicit Impl(ServerConfig config);
  ~Impl() override;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<uint16_t> Start();
  void SetModels(ModelRegistry models);
  void BeginDrain();
  int32_t num_active_requests() const {
    return *num_active_ + (batches_ != nullptr ? batches_->num_running() : 0);
  }
  void Abort();
  void Stop();

 private:
  enum class State { kLoading, kServing, kDraining };
  using Tcp = boost::asio::ip::tcp;
  // A thread with its own sockets and its own event loop: no thread wakes another.
  struct IoThread {
    boost::asio::io_context io{1};
    std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work;
    std::thread thread;
  };

  // The functions of ConnectionOwner.
  std::shared_ptr<void> OnRequest(std::shared_ptr<const HttpRequest> request,
                                  std::shared_ptr<Responder> responder) override;
  std::optional<HttpResponse> RefuseHead(const HttpRequest& head) override;
  BodyBudget* body_budget() override { return &body_budget_; }
  std::string CommonHeaders(const HttpRequest& request) override;
  std::string MakeRequestId() override;
  void PostWork(std::function<void()> task) override;
  void OnClosed(Connection* connection) override;

  Status Bind();
  void Accept();
  // Accepts a connection, or drops it, within the limits. REQUIRES: connections_mutex_ is held.
  void Admit(std::shared_ptr<Connection> connection, const std::string& address);
  bool CloseOldestIdle();
  void OnAccepted(boost::system::error_code error, Tcp::socket socket, Strand strand);
  void ForEachConnection(void (Connection::*member)());
  void Handle(const Route& route, std::shared_ptr<const HttpRequest> request,
              const std::shared_ptr<Responder>& responder, std::function<void(int64_t)> charge);
  // Admits the request if its key's limits allow it. *token ends with the answer; from now on it
  // also counts as one of the key's running requests.
  Status AdmitByKey(const HttpRequest& request, std::shared_ptr<void>* token,
                    std::function<void(int64_t)>* charge);
  std::shared_ptr<AuditEntry> MakeAuditEntry(const HttpRequest& request) const;
  // Wraps *responder. The request's line is written to the audit log when the returned object is
  // released.
  std::shared_ptr<void> BeginAudit(const HttpRequest& request,
                                   std::shared_ptr<Responder>* responder,
                                   std::shared_ptr<void> token);
  std::optional<HttpResponse> RefusalOf(const HttpRequest& request) const;
  bool KeyFits(const HttpRequest& request) const;
  uint64_t NextRandom();

  const ServerConfig config_;
  BodyBudget body_budget_;
  Metrics metrics_;
  Router router_;
  ModelRegistry models_;  // written once, before models_set_ is set
  std::atomic<bool> models_set_{false};
  ServerContext context_;
  std::atomic<State> state_{State::kLoading};
  std::shared_ptr<std::atomic<int32_t>> num_active_;  // shared: tokens may outlive the server
  std::atomic<uint64_t> random_state_;
  std::unique_ptr<BatchService> batches_;  // null: there is no batch directory

  KeyLimits key_limits_;
  std::shared_ptr<AuditLog> audit_log_;  // null: there is no audit log
  std::unique_ptr<TlsFiles> tls_;        // null: plain TCP; used on accept_strand_
  // At least one; the first also accepts. A connection that outlives the server keeps them.
  const std::shared_ptr<std::vector<IoThread>> io_threads_;
  size_t next_io_thread_ = 0;  // the next to get a connection; used on accept_strand_
  Strand accept_strand_;
  Tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_retry_timer_;
  std::unique_ptr<WorkQueue> workers_;
  std::atomic<bool> aborted_{false};  // running requests are given up

  struct Entry {
    std::weak_ptr<Connection> connection;
    std::string address;
  };
  std::mutex connections_mutex_;  // guards the members below
  std::unordered_map<Connection*, Entry> connections_;
  std::unordered_map<std::string, int32_t> num_of_address_;
  bool accepting_ = true;
};

HttpServer::Impl::Impl(ServerConfig config)
    : config_(std::move(config)),
      body_budget_(config_.max_buffered_body_bytes),
      num_active_(std::make_shared<std::atomic<int32_t>>(0)),
      random_state_(TrueRandom()),
      key_limits_(config_.api_keys),
      io_threads_(std::make_shared<std::vector<IoThread>>(std::max(1, config_.num_io_threads))),
      accept_strand_(asio::make_strand(io_threads_->front().io.get_executor())),
      acceptor_(accept_strand_),
      accept_retry_timer_(accept_strand_) {
  AddRoutes(&router_);
  context_ = {&config_, &models_, &metrics_, true, [this] { return NextRandom(); }};
}

HttpServer::Impl::~Impl() { Stop(); }

Result<uint16_t> HttpServer::Impl::Start() {
  if (config_.ssl_certfile.empty() != config_.ssl_keyfile.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "ssl-certfile and ssl-keyfile must be given together",
                  config_.ssl_certfile.empty() ? "ssl-certfile" : "ssl-keyfile");
  }
  if (!config_.ssl_certfile.empty()) {
    SKEIN_ASSIGN_OR_RETURN(tls_, TlsFiles::Load(config_.ssl_certfile, config_.ssl_keyfile));
  }
  if (!config_.audit_log.empty()) {
    SKEIN_ASSIGN_OR_RETURN(audit_log_, AuditLog::Open(config_.audit_log));
  }
  if (!config_.batch_dir.empty()) {
    SKEIN_ASSIGN_OR_RETURN(batches_,
                           BatchService::Open(config_.batch_dir, config_.max_batch_bytes));
    context_.batches = batches_.get();
  }
  SKEIN_RETURN_IF_ERROR(Bind());
  error_code error;
  const uint16_t port = acceptor_.local_endpoint(error).port();
  workers_ = std::make_unique<WorkQueue>(config_.num_worker_threads);
  for (IoThread& io_thread : *io_threads_) {
    io_thread.work.emplace(io_thread.io.get_executor());
    io_thread.thread = std::thread([&io = io_thread.io] {
      // Connections catch failed allocations in their own work, which has half of the reserve.
      // Handlers of Asio itself can still throw, and a strand allocates in a destructor.
      const ReserveScope no_failed_allocation;
      while (true) {
        try {
          io.run();
          break;
        } catch (const std::bad_alloc&) {
          GiveMemoryBack();
        }
      }
    });
  }
  asio::post(accept_strand_, [this] { Accept(); });
  return port;
}

Status HttpServer::Impl::Bind() {
  const std::string where = config_.host + ":" + std::to_string(config_.port);
  Tcp::resolver resolver(io_threads_->front().io);
  error_code error;
  const auto found = resolver.resolve(config_.host, std::to_string(config_.port), error);
  if (error || found.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "host " + config_.host + " is not an address: " + error.message(), "host");
  }
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot listen on " + where + ": " + error.message(), "port");
  }
  return Status::Ok();
}

void HttpServer::Impl::SetModels(ModelRegistry models) {
  models_ = std::move(models);
  metrics_.SetModels(models_);
  if (batches_ != nullptr) {
    batches_->Start(models_, [count = num_active_] { return count->load(); });
  }
  models_set_ = true;
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kServing);
}

// --- Connections ---------------------------------------------------------------------------------

void HttpServer::Impl::Accept() {
  // A failure here would be the end of all accepting.
  const ReserveScope no_failed_allocation;
  Strand strand = asio::make_strand((*io_threads_)[next_io_thread_].io.get_executor());
  next_io_thread_ = (next_io_thread_ + 1) % io_threads_->size();
  acceptor_.async_accept(
      strand,
      asio::bind_executor(accept_strand_, [this, strand](error_code error, Tcp::socket socket) {
        OnAccepted(error, std::move(socket), strand);
      }));
}

void HttpServer::Impl::OnAccepted(error_code error, Tcp::socket socket, Strand strand) {
  if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
  const ReserveScope no_failed_allocation;
  if (error) {
    accept_retry_timer_.expires_after(kAcceptRetryDelay);
    accept_retry_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled && acceptor_.is_open()) Accept();
    });
    return;
  }
  try {
    error_code unknown;
    const std::string address = socket.remote_endpoint(unknown).address().to_string();
    asio::ssl::context* tls = tls_ ? tls_->Context(MonotonicClock().NowUs()) : nullptr;
    auto connection = std::make_shared<Connection>(
        MakeByteStream(std::move(socket), std::move(strand), tls, io_threads_), address, &config_,
        this);
    std::lock_guard lock(connections_mutex_);
    if (!accepting_) return;
    Admit(std::move(connection), address);
  } catch (const std::bad_alloc&) {
    GiveMemoryBack();  // this connection is dropped
  }
  Accept();
}

void HttpServer::Impl::Admit(std::shared_ptr<Connection> connection, const std::string& address) {
  const int32_t most = config_.max_connections_per_address;
  const auto of_address = num_of_address_.find(address);
  if (most > 0 && of_address != num_of_address_.end() && of_address->second >= most) return;
  const auto num_connections = static_cast<int32_t>(connections_.size());
  if (num_connections >= config_.max_connections && !CloseOldestIdle()) {
    if (num_connections >= config_.max_connections + kReserveConnections) return;
    connection->TakeFromReserve();
  }
  ++num_of_address_[address];
  connections_.emplace(connection.get(), Entry{connection, address});
  connection->Start();
}

// Takes O(connections), and runs only when their number is at its limit.
bool HttpServer::Impl::CloseOldestIdle() {
  std::shared_ptr<Connection> oldest;
  for (const auto& [key, entry] : connections_) {
    auto connection = entry.connection.lock();
    if (connection == nullptr || connection->idle_since_us() == 0) continue;
    if (oldest == nullptr || connection->idle_since_us() < oldest->idle_since_us()) {
      oldest = std::move(connection);
    }
  }
  if (oldest == nullptr) return false;
  oldest->CloseWhenIdle();
  return true;
}

void HttpServer::Impl::PostWork(std::function<void()> task) { workers_->Post(0, std::move(task)); }

void HttpServer::Impl::OnClosed(Connection* connection) {
  std::lock_guard lock(connections_mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  const auto of_address = num_of_address_.find(found->second.address);
  if (--of_address->second == 0) num_of_address_.erase(of_address);
  connections_.erase(found);
}

void HttpServer::Impl::ForEachConnection(void (Connection::*member)()) {
  std::vector<std::shared_ptr<Connection>> connections;
  {
    std::lock_guard lock(connections_mutex_);
    for (const auto& [key, entry] : connections_) {
      if (auto connection = entry.connection.lock()) connections.push_back(std::move(connection));
    }
  }
  for (const auto& connection : connections) (connection.get()->*member)();
}

// --- Requests ------------------------------------------------------------------------------------

std::shared_ptr<void> HttpServer::Impl::OnRequest(std::shared_ptr<const HttpRequest> request,
                                                  std::shared_ptr<Responder> responder) {
  if (request->method == "OPTIONS") {
    HttpResponse preflight;
    preflight.status = 204;
    preflight.content_type.clear();
    responder->Send(std::move(preflight));
    return nullptr;
  }
  std::string allowed;
  const Route* route = router_.Find(request->method, request->path, &allowed);
  if (route == nullptr) {
    if (allowed.empty()) {
      responder->Send(
          ErrorResponse(Status(StatusCode::kNotFound, "there is no route " + request->path)));
      return nullptr;
    }
    HttpResponse response = ErrorResponse(
        405, request->method + " is not allowed for " + request->path + ", use " + allowed,
        "invalid_request_error", "method_not_allowed");
    response.headers.emplace_back("Allow", allowed);
    responder->Send(std::move(response));
    return nullptr;
  }
  if (route->kind == Route::Kind::kOpen) {
    ServerContext context = context_;
    context.serving = state_ == State::kServing;
    if (!models_set_) context.models = nullptr;
    route->handler(context, std::move(request), std::move(responder));
    return nullptr;
  }
  // The request is counted before the state is read: a drain either sees the request or refuses it.
  num_active_->fetch_add(1);
  std::shared_ptr<void> token(nullptr, [count = num_active_](void*) { count->fetch_sub(1); });
  if (audit_log_ != nullptr) token = BeginAudit(*request, &responder, std::move(token));
  if (auto refusal = RefusalOf(*request)) {
    responder->Send(*std::move(refusal));
    return token;
  }
  std::function<void(int64_t)> charge;
  if (const Status status = AdmitByKey(*request, &token, &charge); !status.ok()) {
    responder->Send(ErrorResponse(status));
    return token;
  }
  const size_t body_bytes = request->body.size();
  const bool is_heavy = route->is_heavy != nullptr && route->is_heavy(request->body);
  // The token is released at the connection's end.
  auto handle = [this, route, body_bytes, alive = std::weak_ptr<void>(token),
                 request = std::move(request), responder = std::move(responder),
                 charge = std::move(charge)]() mutable {
    if (alive.expired()) return;
    RequestPause pause(alive, &aborted_);
    Handle(*route, std::move(request), responder, std::move(charge));
    if (body_bytes >= kTrimBodyBytes) GiveMemoryBack();
  };
  if (body_bytes <= kShortBodyBytes && !is_heavy) {
    handle();
  } else {
    workers_->Post(body_bytes, std::move(handle));
  }
  return token;
}

Status HttpServer::Impl::AdmitByKey(const HttpRequest& request, std::shared_ptr<void>* token,
                                    std::function<void(int64_t)>* charge) {
  const ApiKey* key = FindApiKey(config_.api_keys, request);
  if (key == nullptr) return Status::Ok();
  const auto index = static_cast<size_t>(key - config_.api_keys.data());
  auto permit = key_limits_.Admit(index, MonotonicClock().NowUs());
  if (!permit.ok()) return permit.status();
  *charge = key_limits_.Charger(index);
  *token = std::shared_ptr<void>(nullptr,
                                 [token = *token, permit = std::move(permit).value()](void*) {});
  return Status::Ok();
}

std::shared_ptr<AuditEntry> HttpServer::Impl::MakeAuditEntry(const HttpRequest& request) const {
  auto entry = std::make_shared<AuditEntry>();
  entry->request_id = request.request_id;
  if (const ApiKey* key = FindApiKey(config_.api_keys, request)) {
    entry->key =
        key->name.empty() ? "#" + std::to_string(key - config_.api_keys.data()) : key->name;
  }
  entry->address = request.address;
  entry->method = request.method;
  entry->path = request.path;
  entry->request_bytes = request.body.size();
  entry->begin_us = MonotonicClock().NowUs();
  return entry;
}

std::shared_ptr<void> HttpServer::Impl::BeginAudit(const HttpRequest& request,
                                                   std::shared_ptr<Responder>* responder,
                                                   std::shared_ptr<void> token) {
  auto entry = MakeAuditEntry(request);
  *responder = Audited(std::move(*responder), entry);
  return std::shared_ptr<void>(nullptr, [entry, log = audit_log_, token = std::move(token)](void*) {
    log->Write(*entry, MonotonicClock().NowUs());
  });
}

void HttpServer::Impl::Handle(const Route& route, std::shared_ptr<const HttpRequest> request,
                              const std::shared_ptr<Responder>& responder,
                              std::function<void(int64_t)> charge) {
  try {
    const ReserveScope few_failed_allocations(ReserveScope::Share::kHalf);
    ServerContext context = context_;
    context.charge = std::move(charge);
    context.route_class = route.route_class;
    context.body_bytes = request->body.size();
    route.handler(context, std::move(request), responder);
  } catch (const std::bad_alloc&) {
    // The handler is gone; its memory is returned to the system.
    GiveMemoryBack();
    const ReserveScope no_failed_allocation;
    responder->Send(OutOfMemoryResponse());
  }
}

// Refuses a caller that may not ask for work before it sends a long body.
std::optional<HttpResponse> HttpServer::Impl::RefuseHead(const HttpRequest& head) {
  std::string allowed;
  const Route* route = router_.Find(head.method, head.path, &allowed);
  if (route == nullptr || route->kind == Route::Kind::kOpen) return std::nullopt;
  auto refusal = RefusalOf(head);
  if (refusal && audit_log_ != nullptr) {
    const auto entry = MakeAuditEntry(head);
    entry->status = refusal->status;
    entry->response_bytes = refusal->body.size();
    entry->complete = true;
    audit_log_->Write(*entry, entry->begin_us);
  }
  return refusal;
}

std::optional<HttpResponse> HttpServer::Impl::RefusalOf(const HttpRequest& request) const {
  if (request.from_reserve) {
    return ErrorResponse(Status(StatusCode::kUnavailable,
                                "all " + std::to_string(config_.max_connections) +
                                    " connections are in use: this one may not ask for work"));
  }
  if (auto refusal = RefuseForeign(config_, request)) return refusal;
  if (!KeyFits(request)) {
    HttpResponse response = ErrorResponse(401, "the API key is missing or wrong",
                                          "authentication_error", "invalid_api_key");
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  switch (state_.load()) {
    case State::kLoading:
      return LoadingResponse();
    case State::kDraining:
      return DrainingResponse();
    case State::kServing:
      return std::nullopt;
  }
  return std::nullopt;
}

bool HttpServer::Impl::KeyFits(const HttpRequest& request) const {
  return config_.api_keys.empty() || FindApiKey(config_.api_keys, request) != nullptr;
}

std::string HttpServer::Impl::CommonHeaders(const HttpRequest& request) {
  std::string headers = "x-request-id: " + request.request_id + "\r\n";
  const std::string origin = AllowedOrigin(config_, request);
  if (origin.empty()) return headers;
  headers += "Access-Control-Allow-Origin: " + origin + "\r\n";
  if (origin != "*") headers += "Vary: Origin\r\n";
  headers += "Access-Control-Expose-Headers: x-request-id\r\n";
  if (request.method == "OPTIONS") {
    const std::string_view wanted = request.Header("access-control-request-headers");
    headers += "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n";
    headers += "Access-Control-Allow-Headers: " +
               (wanted.empty() ? std::string("*") : std::string(wanted)) + "\r\n";
    headers += "Access-Control-Max-Age: 600\r\n";
  }
  return headers;
}

std::string HttpServer::Impl::MakeRequestId() {
  char text[2 * 16 + 1];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(NextRandom()),
                static_cast<unsigned long long>(NextRandom()));
  return text;
}

uint64_t HttpServer::Impl::NextRandom() {
  uint64_t z = random_state_.fetch_add(kGoldenGamma) + kGoldenGamma;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// --- The end -------------------------------------------------------------------------------------

void HttpServer::Impl::BeginDrain() {
  state_ = State::kDraining;
  if (batches_ != nullptr) batches_->BeginDrain();
  ForEachConnection(&Connection::CloseWhenIdle);
}

void HttpServer::Impl::Abort() {
  BeginDrain();
  aborted_ = true;
  if (batches_ != nullptr) batches_->Abort();
  ForEachConnection(&Connection::BeginShutdown);
}

void HttpServer::Impl::Stop() {
  if (!io_threads_->front().work) return;  // it has not started, or has stopped
  state_ = State::kDraining;
  {
    std::lock_guard lock(connections_mutex_);
    accepting_ = false;
  }
  asio::post(accept_strand_, [this] {
    error_code ignored;
    acceptor_.close(ignored);
    accept_retry_timer_.cancel();
  });
  ForEachConnection(&Connection::CloseNow);
  // Workers end first. Their last posts to connections are then queued and run below.
  workers_->Stop();
  if (batches_ != nullptr) batches_->Stop();
  for (IoThread& io_thread : *io_threads_) {
    io_thread.work.reset();
    if (io_thread.thread.joinable()) io_thread.thread.join();
  }
}

// --- The public face -----------------------------------------------------------------------------

HttpServer::HttpServer(ServerConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}

HttpServer::~HttpServer() = default;

Result<uint16_t> HttpServer::Start() { return impl_->Start(); }

void HttpServer::SetModels(ModelRegistry models) { impl_->SetModels(std::move(models)); }

void HttpServer::BeginDrain() { impl_->BeginDrain(); }

int32_t HttpServer::num_active_requests() const { return impl_->num_active_requests(); }

void HttpServer::Abort() { impl_->Abort(); }

void HttpServer::Stop() { impl_->Stop(); }

}  // namespace skein
