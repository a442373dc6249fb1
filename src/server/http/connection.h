#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/http/byte_stream.h"
#include "server/http/http_message.h"
#include "server/server_config.h"

namespace skein {

class Connection;

// The server as a connection sees it. Called on the connection's strand; must not block.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // Handles a complete request. The returned object is released when the answer has been sent or
  // given up.
  virtual std::shared_ptr<void> OnRequest(std::shared_ptr<const HttpRequest> request,
                                          std::shared_ptr<Responder> responder) = 0;
  // Returns header lines ("name: value\r\n") for every answer to this request, refusals included.
  virtual std::string CommonHeaders(const HttpRequest& request) = 0;
  virtual std::string MakeRequestId() = 0;
  // Runs a long `task` on another thread.
  virtual void PostWork(std::function<void()> task) = 0;
  virtual void OnClosed(Connection* connection) = 0;
};

// One HTTP/1.1 connection: parses requests, one at a time, and writes their answers.
//
//   handshake -> reading -> answering -> reading ...     keep-alive
//                   |           |
//                   +-----------+-> lingering -> closed  refused, or "Connection: close"
//
// A read is always pending, also while a request is answered. So a closed peer is noticed at once,
// and bytes that a client sends ahead are kept (up to a limit). Lingering discards further bytes of
// the peer, so that it reads the answer instead of a reset.
// Thread rule: the strand of the stream owns all state; the public members post to it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `config` and `owner` must outlive the connection.
  Connection(std::unique_ptr<ByteStream> stream, const ServerConfig* config,
             ConnectionOwner* owner);

  void Start();
  // Asks the running request to end with an error; an idle connection closes.
  void BeginShutdown();
  void CloseNow();
  // Ends keep-alive after the current answer; an idle connection closes.
  void CloseWhenIdle();

 private:
  class Exchange;  // the Responder of one request
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  enum class State { kHandshake, kReading, kAnswering, kLingering, kClosed };

  void Post(std::function<void()> task);
  void Read();
  void OnRead(boost::system::error_code error, size_t num_bytes);
  void StartMessage();
  void Parse();
  void OnHead();
  // The fields of `message` so far, and the request's id: the input of CommonHeaders.
  HttpRequest Head(const Parser::value_type& message);
  void Dispatch();
  void Refuse(HttpResponse response);  // answers without the owner; closes
  void SendWhole(const HttpResponse& response);
  void SendHead(const HttpResponse& response, std::optional<size_t> body_bytes);
  void SendPiece(const std::string& bytes);
  void SendEnd();
  void Flush();
  void OnWritten(boost::system::error_code error, size_t num_bytes);
  void OnAnswered();
  void AbortExchange(AbortReason reason);
  void Close();
  void SetReadDeadline(int64_t timeout_us);  // 0: none
  void OnReadDeadline();

  struct Waiting {
    std::string bytes;
    size_t first_piece_end = 0;  // of a stream's first piece in `bytes`; 0: none
  };

  std::unique_ptr<ByteStream> stream_;
  const ServerConfig* config_;
  ConnectionOwner* owner_;
  State state_ = State::kHandshake;
  boost::asio::steady_timer read_timer_;
  boost::asio::steady_timer write_timer_;

  bool reading_ = false;
  std::array<char, 16384> chunk_;
  boost::beast::flat_buffer buffer_;  // received, not yet parsed
  std::optional<Parser> parser_;
  bool message_started_ = false;
  bool head_seen_ = false;
  bool keep_alive_ = true;
  bool head_only_ = false;  // HEAD: the answer has no body
  bool http10_ = false;

  std::shared_ptr<Exchange> exchange_;
  std::string common_headers_;
  bool streaming_ = false;
  bool answer_complete_ = false;
  bool close_when_idle_ = false;
  Waiting pending_;      // waits for the end of writing_
  std::string writing_;  // writing_[0, written_) is being sent
  size_t written_ = 0;
  bool write_active_ = false;
};

}  // namespace skein
