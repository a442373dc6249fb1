#include "server/http/byte_stream.h"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace skein {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = asio::ip::tcp::socket;

Socket& SocketOf(Socket& stream) { return stream; }
Socket& SocketOf(asio::ssl::stream<Socket>& stream) { return stream.next_layer(); }

template <typename Stream>
class StreamOf final : public ByteStream {
 public:
  template <typename... Args>
  StreamOf(std::shared_ptr<const void> loop, Strand strand, Args&&... args)
      : ByteStream(std::move(loop)),
        strand_(std::move(strand)),
        stream_(std::forward<Args>(args)...) {
    error_code ignored;
    SocketOf(stream_).set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void AsyncHandshake(std::function<void(error_code)> handler) override {
    if constexpr (std::is_same_v<Stream, Socket>) {
      asio::post(strand_, [handler = std::move(handler)] { handler({}); });
    } else {
      stream_.async_handshake(asio::ssl::stream_base::server,
                              asio::bind_executor(strand_, std::move(handler)));
    }
  }
  void AsyncReadSome(asio::mutable_buffer buffer, Handler handler) override {
    stream_.async_read_some(buffer, asio::bind_executor(strand_, std::move(handler)));
  }
  void AsyncWriteSome(asio::const_buffer buffer, Handler handler) override {
    stream_.async_write_some(buffer, asio::bind_executor(strand_, std::move(handler)));
  }
  void ShutdownSend() override {
    // No close_notify is sent: HTTP's framing marks the end of an answer, and asio's shutdown would
    // wait for the peer's close_notify.
    error_code ignored;
    SocketOf(stream_).shutdown(Socket::shutdown_send, ignored);
  }
  void Close() override {
    error_code ignored;
    SocketOf(stream_).close(ignored);
  }
  const Strand& strand() const override { return strand_; }

 private:
  Strand strand_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<ByteStream> MakeByteStream(Socket socket, Strand strand, asio::ssl::context* tls,
                                           std::shared_ptr<const void> loop) {
  if (tls == nullptr) {
    return std::make_unique<StreamOf<Socket>>(std::move(loop), std::move(strand),
                                              std::move(socket));
  }
  return std::make_unique<StreamOf<asio::ssl::stream<Socket>>>(std::move(loop), std::move(strand),
                                                               std::move(socket), *tls);
}

}  // namespace skein
