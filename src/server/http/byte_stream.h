#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace skein {

using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

// A connected socket, plain or under TLS, bound to a strand on which handlers run. At most one read
// and one write at a time. A buffer must live until its handler has run.
class ByteStream {
 public:
  using Handler = std::function<void(boost::system::error_code, size_t num_bytes)>;

  // `loop` keeps alive what the handlers run on; null if that outlives the stream.
  explicit ByteStream(std::shared_ptr<const void> loop = nullptr) : loop_(std::move(loop)) {}
  virtual ~ByteStream() = default;
  virtual void AsyncHandshake(std::function<void(boost::system::error_code)> handler) = 0;
  virtual void AsyncReadSome(boost::asio::mutable_buffer buffer, Handler handler) = 0;
  virtual void AsyncWriteSome(boost::asio::const_buffer buffer, Handler handler) = 0;
  virtual void ShutdownSend() = 0;  // the peer then sees the end of the data
  virtual void Close() = 0;         // pending operations fail
  virtual const Strand& strand() const = 0;

 private:
  const std::shared_ptr<const void> loop_;
};

// `socket` must run on `strand`. A null `tls` means plain TCP. The stream keeps alive what it needs
// of `tls`, and `loop`.
std::unique_ptr<ByteStream> MakeByteStream(boost::asio::ip::tcp::socket socket, Strand strand,
                                           boost::asio::ssl::context* tls,
                                           std::shared_ptr<const void> loop);

}  // namespace skein
