#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/handover/frame_channel.h"
#include "engine/handover/messages.h"

namespace skein {

// The prefill instance's side of a hand-over: a connection to a decode instance, on its own thread.
// It connects again whenever the connection is lost.
//
//   connecting --> hellos exchanged, equal: connected --> lost (closed, or silent for kSilence)
//       ^                                                   |
//       +----------------- after kRetry --------------------+
class DecodePeer {
 public:
  static constexpr std::chrono::milliseconds kRetry{500};
  static constexpr std::chrono::milliseconds kSilence{5000};

  // Called on the peer's thread.
  struct Events {
    std::function<void(uint64_t call, RequestOutput)> output;
    // The decode instance refused the call, which does not run there.
    std::function<void(uint64_t call, Status)> refused;
    // The connection is lost: there are no more events for earlier calls.
    std::function<void()> lost;
  };

  // `max_queued_bytes`: the most bytes of frames that wait to be sent.
  DecodePeer(HostPort address, Hello hello, size_t max_queued_bytes, Events events);
  ~DecodePeer();  // calls Stop
  DecodePeer(const DecodePeer&) = delete;
  DecodePeer& operator=(const DecodePeer&) = delete;

  // Any thread may call these. A call that is sent without a connection is refused.
  bool connected() const { return connected_.load(); }
  void Send(uint64_t call, std::vector<WireBytes> frames);
  size_t queued_bytes() const { return queued_bytes_.load(); }

  // Closes the connection and ends the thread. Must not be called on the peer's thread.
  void Stop();

 private:
  void Connect();
  void RetryLater(const std::string& reason);
  void OnConnected(boost::asio::ip::tcp::socket socket);
  void OnReceived(WireBytes bytes);
  void Handle(HandoverMessage message);
  void OnClosed(const std::string& reason);
  void Watch();

  const HostPort address_;
  const Hello hello_;
  const size_t max_queued_bytes_;
  const Events events_;
  std::atomic<bool> connected_{false};
  std::atomic<size_t> queued_bytes_{0};  // of frames that Send took and the channel has not sent

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::ip::tcp::resolver resolver_{io_};
  boost::asio::steady_timer timer_{io_};
  std::shared_ptr<FrameChannel> channel_;  // null: no connection
  std::chrono::steady_clock::time_point heard_;
  std::string last_reason_;  // of a failure; the same reason is logged once
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace skein
