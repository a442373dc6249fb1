#include "engine/handover/frame_channel.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <new>
#include <utility>

#include "base/memory_reserve.h"

namespace skein {

using boost::system::error_code;

FrameChannel::FrameChannel(boost::asio::ip::tcp::socket socket, size_t max_queued_bytes)
    : socket_(std::move(socket)), max_queued_bytes_(max_queued_bytes) {
  error_code ignored;  // the connection works without these options, too
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(boost::asio::socket_base::keep_alive(true), ignored);
}

template <typename Fn>
void FrameChannel::Guard(const Fn& fn) {
  try {
    fn();
  } catch (const std::bad_alloc&) {
    Close("no memory left");
  }
}

void FrameChannel::ReadNext() {
  if (closed_) return;
  const auto take = [self = shared_from_this()](error_code error, size_t /*num_bytes*/) {
    self->Guard([&] {
      if (error) return self->Close(error.message());
      Result<size_t> length = ParseFrameHead(self->head_);
      if (!length.ok()) return self->Close(length.status().message());
      self->ReadBody(*length);
    });
  };
  boost::asio::async_read(socket_, boost::asio::buffer(head_), take);
}

// The buffer grows with the bytes that arrive, since a frame's header alone may claim any length.
void FrameChannel::ReadBody(size_t num_bytes) {
  constexpr size_t kPieceBytes = size_t{8} << 20;
  if (closed_) return;
  const size_t begin = body_.size();
  const size_t piece = std::min(kPieceBytes, num_bytes - begin);
  body_.resize(begin + piece);
  boost::asio::async_read(
      socket_, boost::asio::buffer(body_.data() + begin, piece),
      [self = shared_from_this(), num_bytes](error_code error, size_t /*num_read*/) {
        self->Guard([&] {
          if (error) return self->Close(error.message());
          if (self->closed_) return;
          if (self->body_.size() < num_bytes) return self->ReadBody(num_bytes);
          self->events_.received(std::exchange(self->body_, {}));
        });
      });
}

void FrameChannel::Write(WireBytes frame) {
  if (closed_) return;
  queued_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  if (queued_bytes_ > max_queued_bytes_) return Close("the other side does not read");
  if (queue_.size() == 1) WriteFirst();
}

void FrameChannel::WriteFirst() {
  boost::asio::async_write(socket_, boost::asio::buffer(queue_.front()),
                           [self = shared_from_this()](error_code error, size_t /*num_bytes*/) {
                             if (error) return self->Close(error.message());
                             if (self->closed_) return;
                             self->queued_bytes_ -= self->queue_.front().size();
                             self->queue_.pop_front();
                             if (!self->queue_.empty()) self->WriteFirst();
                           });
}

// The queue must stay until the operations on its buffers have ended.
void FrameChannel::Close(const std::string& reason) {
  if (std::exchange(closed_, true)) return;
  error_code ignored;
  socket_.close(ignored);
  const Events events = std::exchange(events_, {});
  if (events.closed) events.closed(reason);
}

void RunUntilDone(boost::asio::io_context* io) {
  const ReserveScope scope;
  while (true) {
    try {
      io->run();
      return;
    } catch (const std::bad_alloc&) {
    }
  }
}

Result<HostPort> ParseHostPort(const std::string& option, const std::string& text) {
  const size_t colon = text.rfind(':');
  HostPort address;
  bool good = colon != std::string::npos && colon > 0;
  if (good) {
    address.host = text.substr(0, colon);
    const bool bracketed = address.host.front() == '[' && address.host.back() == ']';
    if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, address.port);
    good = read.ec == std::errc() && read.ptr == end && !address.host.empty() &&
           (bracketed || address.host.find(':') == std::string::npos);
  }
  if (good) return address;
  return Status(StatusCode::kInvalidArgument,
                option + " is '" + text + "', must be HOST:PORT, the port in [0, 65535]");
}

}  // namespace skein
