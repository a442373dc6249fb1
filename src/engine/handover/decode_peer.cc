#include "engine/handover/decode_peer.h"

#include <spdlog/spdlog.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace skein {

using boost::asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kWatchInterval(500);

}  // namespace

DecodePeer::DecodePeer(HostPort address, Hello hello, size_t max_queued_bytes, Events events)
    : address_(std::move(address)),
      hello_(std::move(hello)),
      max_queued_bytes_(max_queued_bytes),
      events_(std::move(events)),
      work_(io_.get_executor()) {
  boost::asio::post(io_, [this] { Connect(); });
  thread_ = std::thread([this] { RunUntilDone(&io_); });
}

DecodePeer::~DecodePeer() { Stop(); }

void DecodePeer::Stop() {
  if (!thread_.joinable()) return;
  boost::asio::post(io_, [this] {
    stopped_ = true;
    timer_.cancel();
    resolver_.cancel();
    if (channel_ != nullptr) channel_->Close("this server ends");
    work_.reset();
  });
  thread_.join();
}

void DecodePeer::Connect() {
  if (stopped_) return;
  resolver_.async_resolve(address_.host, std::to_string(address_.port),
                          [this](error_code error, const tcp::resolver::results_type& results) {
                            if (stopped_) return;
                            if (error) return RetryLater(error.message());
                            auto socket = std::make_shared<tcp::socket>(io_);
                            boost::asio::async_connect(
                                *socket, results,
                                [this, socket](error_code failure, const tcp::endpoint& /*there*/) {
                                  timer_.cancel();
                                  if (stopped_) return;
                                  if (failure) return RetryLater(failure.message());
                                  OnConnected(std::move(*socket));
                                });
                            // Without a timer, a host that does not answer would hold the attempt
                            // for minutes.
                            timer_.expires_after(kSilence);
                            timer_.async_wait([socket](error_code cancelled) {
                              error_code ignored;
                              if (!cancelled) socket->close(ignored);
                            });
                          });
}

void DecodePeer::RetryLater(const std::string& reason) {
  if (stopped_) return;
  if (reason != last_reason_) {
    spdlog::warn("decode peer {}:{}: {}; requests decode here", address_.host, address_.port,
                 reason);
    last_reason_ = reason;
  }
  timer_.expires_after(kRetry);
  timer_.async_wait([this](error_code cancelled) {
    if (!cancelled) Connect();
  });
}

void DecodePeer::OnConnected(tcp::socket socket) {
  channel_ = std::make_shared<FrameChannel>(std::move(socket), 2 * max_queued_bytes_);
  channel_->set_events({.received = [this](WireBytes bytes) { OnReceived(std::move(bytes)); },
                        .closed = [this](const std::string& reason) { OnClosed(reason); }});
  heard_ = std::chrono::steady_clock::now();
  channel_->Write(FrameOf(hello_));
  channel_->ReadNext();
  Watch();
}

void DecodePeer::Watch() {
  timer_.expires_after(kWatchInterval);
  timer_.async_wait([this, channel = channel_](error_code cancelled) {
    if (cancelled || channel != channel_ || channel == nullptr) return;
    queued_bytes_.store(channel_->queued_bytes());
    if (std::chrono::steady_clock::now() - heard_ > kSilence) {
      channel_->Close("it is silent");
      return;
    }
    Watch();
  });
}

void DecodePeer::OnReceived(WireBytes bytes) {
  heard_ = std::chrono::steady_clock::now();
  Result<HandoverMessage> message = ParseMessage(bytes, hello_.block_bytes);
  if (!message.ok()) {
    channel_->Close(message.status().message());
    return;
  }
  Handle(std::move(*message));
  if (channel_ != nullptr) channel_->ReadNext();
}

void DecodePeer::Handle(HandoverMessage message) {
  if (const auto* hello = std::get_if<Hello>(&message)) {
    if (*hello == hello_) {
      connected_.store(true);
      last_reason_.clear();
      spdlog::info("requests decode at {}:{}", address_.host, address_.port);
      return;
    }
    channel_->Close("it serves '" + hello->model + "', this server '" + hello_.model + "'");
  } else if (!connected_.load()) {
    channel_->Close("it does not begin with a hello");
  } else if (auto* output = std::get_if<CallOutput>(&message)) {
    events_.output(output->call, std::move(output->output));
  } else if (auto* refusal = std::get_if<CallRefusal>(&message)) {
    events_.refused(refusal->call, std::move(refusal->status));
  } else if (!std::holds_alternative<Alive>(message)) {
    channel_->Close("it sends messages of a prefill instance");
  }
}

void DecodePeer::OnClosed(const std::string& reason) {
  channel_.reset();
  queued_bytes_.store(0);
  timer_.cancel();
  if (connected_.exchange(false)) events_.lost();
  RetryLater(reason);
}

void DecodePeer::Send(uint64_t call, std::vector<WireBytes> frames) {
  size_t num_bytes = 0;
  for (const WireBytes& frame : frames) num_bytes += frame.size();
  queued_bytes_ += num_bytes;
  boost::asio::post(io_, [this, call, taken = std::move(frames)]() mutable {
    for (WireBytes& frame : taken) {
      const std::shared_ptr<FrameChannel> channel = channel_;  // Write may reset channel_
      if (channel == nullptr || !connected_.load()) {
        events_.refused(call, {StatusCode::kUnavailable, "the decode peer is gone"});
        return;
      }
      channel->Write(std::move(frame));
    }
    if (channel_ != nullptr) queued_bytes_.store(channel_->queued_bytes());
  });
}

}  // namespace skein
