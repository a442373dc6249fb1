#pragma once

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/byte_stream.h"

namespace skein::fuzz {

// A peer in memory: its bytes arrive in pieces, and those that it is sent are kept. Handlers run on
// the strand, never inside the call that starts an operation. It stays when it has sent all, or
// goes away after a number of bytes that it was sent.
class MemoryStream final : public ByteStream {
 public:
  struct Peer {
    std::string_view sends;
    size_t piece_bytes = 1;        // that arrive at a time
    size_t takes_bytes = 1 << 30;  // at a time, of what it is sent
    size_t leaves_after = ~size_t{0};
    std::string received;
    bool closed = false;
  };

  // `peer` outlives the stream.
  MemoryStream(Strand strand, Peer* peer) : strand_(std::move(strand)), peer_(peer) {}

  void AsyncHandshake(std::function<void(boost::system::error_code)> handler) override {
    boost::asio::post(strand_, [handler = std::move(handler)] { handler({}); });
  }
  void AsyncReadSome(boost::asio::mutable_buffer buffer, Handler handler) override {
    const size_t size = std::min({peer_->piece_bytes, buffer.size(), peer_->sends.size()});
    if (size == 0 && !peer_->closed) {
      waiting_ = std::move(handler);
      return;
    }
    std::memcpy(buffer.data(), peer_->sends.data(), size);
    peer_->sends.remove_prefix(size);
    Answer(size, peer_->closed, std::move(handler));
  }
  void AsyncWriteSome(boost::asio::const_buffer buffer, Handler handler) override {
    const size_t size = std::min(peer_->takes_bytes, buffer.size());
    const bool gone = peer_->closed || peer_->received.size() >= peer_->leaves_after;
    if (!gone) peer_->received.append(static_cast<const char*>(buffer.data()), size);
    Answer(size, gone, std::move(handler));
  }
  void ShutdownSend() override {}
  void Close() override {
    peer_->closed = true;
    if (waiting_) Answer(0, true, std::exchange(waiting_, {}));
  }
  const Strand& strand() const override { return strand_; }

 private:
  void Answer(size_t size, bool at_end, Handler handler) {
    boost::system::error_code error;
    if (at_end) error = boost::asio::error::eof;
    boost::asio::post(
        strand_, [handler = std::move(handler), error, size] { handler(error, error ? 0 : size); });
  }

  Strand strand_;
  Peer* peer_;
  Handler waiting_;  // a read
};

}  // namespace skein::fuzz
