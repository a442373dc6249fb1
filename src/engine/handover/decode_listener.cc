#include "engine/handover/decode_listener.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "engine/handover/decode_session.h"

namespace skein {

using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kAliveInterval(500);
// The wait after a failed accept, for example if too many files are open.
constexpr std::chrono::milliseconds kAcceptAgain(50);

}  // namespace

DecodeListener::DecodeListener(EngineLoop* engine, KvPort* port, Hello hello)
    : engine_(engine), port_(port), hello_(std::move(hello)), work_(io_.get_executor()) {}

DecodeListener::~DecodeListener() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

Result<uint16_t> DecodeListener::Start(const HostPort& address) {
  error_code error;
  boost::asio::ip::tcp::resolver resolver(io_);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      boost::asio::ip::resolver_base::passive, error);
  if (!error && !found.empty()) {
    const boost::asio::ip::tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(boost::asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kMaxSessions, error);
  }
  if (error) {
    return Status(StatusCode::kUnavailable, "cannot listen for hand-overs on " + address.host +
                                                ":" + std::to_string(address.port) + ": " +
                                                error.message());
  }
  const uint16_t port = acceptor_.local_endpoint(error).port();
  boost::asio::post(io_, [this] {
    Accept();
    SayAlive();
  });
  thread_ = std::thread([this] { RunUntilDone(&io_); });
  return port;
}

void DecodeListener::Accept() {
  acceptor_.async_accept([this](error_code error, boost::asio::ip::tcp::socket socket) {
    if (stopped_) return;
    if (!error && std::ssize(sessions_) < kMaxSessions) {
      const auto session = std::make_shared<DecodeSession>(this, std::move(socket));
      sessions_.insert(session);
      session->Start();
    }
    if (!error) return Accept();
    auto pause = std::make_shared<boost::asio::steady_timer>(io_, kAcceptAgain);
    pause->async_wait([this, pause](error_code /*cancelled*/) {
      if (!stopped_) Accept();
    });
  });
}

void DecodeListener::SayAlive() {
  timer_.expires_after(kAliveInterval);
  timer_.async_wait([this](error_code cancelled) {
    if (cancelled || stopped_) return;
    const std::vector<std::shared_ptr<DecodeSession>> sessions(sessions_.begin(), sessions_.end());
    for (const auto& session : sessions) session->SayAlive();
    SayAlive();
  });
}

void DecodeListener::Stop() {
  boost::asio::post(io_, [this] {
    if (std::exchange(stopped_, true)) return;
    error_code ignored;
    acceptor_.close(ignored);
    timer_.cancel();
    const std::vector<std::shared_ptr<DecodeSession>> sessions(sessions_.begin(), sessions_.end());
    for (const auto& session : sessions) session->Close("this server ends");
    work_.reset();
  });
}

}  // namespace skein
