#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "server/http/connection.h"
#include "server/metrics.h"
#include "server/model_registry.h"
#include "server/router.h"
#include "server/server_config.h"

namespace skein {

// The HTTP server: accepts connections, guards the routes, passes requests to their handlers.
//
//   loading --SetModels--> serving --BeginDrain--> draining --Abort, Stop--> stopped
//
// num_io_threads get the sockets in turn. num_worker_threads parse and tokenize requests; the
// receiving thread does so for short ones. The engine's thread only appends to a mailbox.
// Thread rule: the members may be called from any thread; Start, SetModels and Stop once each.
class HttpServer final : public ConnectionOwner {
 public:
  explicit HttpServer(ServerConfig config);
  ~HttpServer() override;  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and begins to answer, "Loading model" at first. Returns the port. Fails if the address is
  // in use or unknown or the TLS files do not fit; the error names the option.
  Result<uint16_t> Start();

  // Starts to serve requests. The models must outlive the server.
  void SetModels(ModelRegistry models);

  // Refuses new work with 503 and turns /health to 503; running requests continue.
  void BeginDrain();
  // The number of requests that are computed or answered.
  int32_t num_active_requests() const { return *num_active_; }
  bool Drained() const { return num_active_requests() == 0; }
  // Ends running requests with an error to their clients, and cancels them in the engine.
  void Abort();
  // Closes all connections and ends the threads. No request reaches an engine afterwards, and
  // outputs of earlier ones are dropped.
  void Stop();

 private:
  enum class State { kLoading, kServing, kDraining };
  using Tcp = boost::asio::ip::tcp;
  // A thread with its own sockets: no thread wakes another.
  struct IoThread {
    boost::asio::io_context io{1};
    std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work;
    std::thread thread;
  };

  // ConnectionOwner.
  std::shared_ptr<void> OnRequest(std::shared_ptr<const HttpRequest> request,
                                  std::shared_ptr<Responder> responder) override;
  std::string CommonHeaders(const HttpRequest& request) override;
  std::string MakeRequestId() override;
  void PostWork(std::function<void()> task) override;
  void OnClosed(Connection* connection) override;

  Status Bind();
  void Accept();
  void OnAccepted(boost::system::error_code error, Tcp::socket socket, Strand strand);
  void ForEachConnection(void (Connection::*member)());
  std::optional<HttpResponse> RefusalOf(const HttpRequest& request) const;
  bool KeyFits(const HttpRequest& request) const;
  std::string AllowedOrigin(const HttpRequest& request) const;  // empty: none
  uint64_t NextRandom();

  const ServerConfig config_;
  Metrics metrics_;
  Router router_;
  ModelRegistry models_;  // written once, before models_set_
  std::atomic<bool> models_set_{false};
  ServerContext context_;
  std::atomic<State> state_{State::kLoading};
  std::shared_ptr<std::atomic<int32_t>> num_active_;  // shared: tokens may outlive the server
  std::atomic<uint64_t> random_state_;

  std::unique_ptr<boost::asio::ssl::context> tls_;
  std::vector<IoThread> io_threads_;  // at least one; the first also accepts
  size_t next_io_thread_ = 0;  // the thread that gets the next connection; used on accept_strand_
  Strand accept_strand_;
  Tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_retry_timer_;
  std::unique_ptr<boost::asio::thread_pool> workers_;
  bool stopped_ = false;

  std::mutex connections_mutex_;  // guards connections_ and accepting_
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  bool accepting_ = true;
};

}  // namespace skein
