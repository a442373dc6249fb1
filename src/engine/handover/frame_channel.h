#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "engine/handover/messages.h"

namespace skein {

// One connection between a prefill and a decode instance, with frames in both directions. All
// members run on the thread of the socket's io_context. The object keeps itself alive while an
// operation is under way.
class FrameChannel : public std::enable_shared_from_this<FrameChannel> {
 public:
  struct Events {
    // A message without its header has arrived. The next message is read when ReadNext is called.
    std::function<void(WireBytes)> received;
    // The connection has been closed. Called once; `reason` is for people.
    std::function<void(const std::string& reason)> closed;
  };

  // If a frame would make more than `max_queued_bytes` wait to be sent, the connection is closed.
  FrameChannel(boost::asio::ip::tcp::socket socket, size_t max_queued_bytes);

  void set_events(Events events) { events_ = std::move(events); }
  void ReadNext();
  void Write(WireBytes frame);
  void Close(const std::string& reason);
  size_t queued_bytes() const { return queued_bytes_; }

 private:
  // Runs a part of the connection's work; without memory for it the connection is closed.
  template <typename Fn>
  void Guard(const Fn& fn);
  void ReadBody(size_t num_bytes);
  void WriteFirst();

  boost::asio::ip::tcp::socket socket_;
  const size_t max_queued_bytes_;
  Events events_;
  std::array<std::byte, kFrameHeadBytes> head_{};
  WireBytes body_;
  std::deque<WireBytes> queue_;  // the first frame is being sent
  size_t queued_bytes_ = 0;
  bool closed_ = false;
};

// Runs the handlers of `io` until there is no more work. One that finds no memory is given up.
void RunUntilDone(boost::asio::io_context* io);

// An address, as HOST:PORT.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
// Fails with kInvalidArgument; the message calls the text `option`. [::1]:80 is an IPv6 address.
Result<HostPort> ParseHostPort(const std::string& option, const std::string& text);

}  // namespace skein
