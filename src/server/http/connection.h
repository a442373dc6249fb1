#pragma once

#include <array>
#include <atomic>
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

// The part of the server that a connection calls, on the connection's strand. Must not block.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // Handles a complete request. The returned object is released when the answer has been sent or
  // the connection has given up.
  virtual std::shared_ptr<void> OnRequest(std::shared_ptr<const HttpRequest> request,
                                          std::shared_ptr<Responder> responder) = 0;
  // Checks a request's head before its body is complete. A refusal ends the connection.
  virtual std::optional<HttpResponse> RefuseHead(const HttpRequest& head) = 0;
  virtual BodyBudget* body_budget() = 0;
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
// A read is always pending, even while a request is answered. Therefore a peer that closes is
// noticed at once, and bytes that a client sends early are kept (up to a limit). In the state
// `lingering`, further bytes of the peer are discarded, so that the peer reads the answer and not a
// reset.
// Thread rule: the strand of the stream owns all state; the public members post to it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `config` and `owner` must outlive all use of the connection, but not the object itself: the
  // engine's thread can hold the responder of an answered request for a moment after the server has
  // gone.
  Connection(std::unique_ptr<ByteStream> stream, std::string address, const ServerConfig* config,
             ConnectionOwner* owner);

  void Start();
  // Call before Start: the connection takes one of the reserved places. It may not ask for work and
  // closes after its first answer.
  void TakeFromReserve();
  // The time since which the connection has been idle, on a steady clock; 0: it is receiving or
  // answering a request. Any thread.
  int64_t idle_since_us() const { return idle_since_us_.load(std::memory_order_relaxed); }
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
  template <typename Task>
  void Guard(const Task& task);
  void Read();
  void OnRead(boost::system::error_code error, size_t num_bytes);
  void TakeBytes(size_t num_bytes);  // moves bytes out of chunk_
  void StartMessage();
  void Parse();
  // The number of bytes of the head, once it is complete. The parser gets only a whole, unambiguous
  // head, so that trailers never count as its fields. 0: more bytes are awaited, or the head has
  // been refused.
  size_t FindHead();
  // Whether a chunked body may still be the shortest one, without a chunk, of which a part has
  // come. Beast would end the process if it got this part piece by piece.
  bool WaitsForShortestChunks() const;
  // False: the parser takes no more bytes, or the request was refused.
  bool PutBytes(size_t num_bytes);
  bool OnHead();  // false: the request was refused
  bool ChargeBody();
  // Makes the request of `message`, without its body.
  std::shared_ptr<HttpRequest> Head(const Parser::value_type& message);
  void Dispatch();
  void Refuse(HttpResponse response);  // answers without asking the owner; closes
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
    size_t first_piece_end = 0;  // end, in `bytes`, of a stream's first piece; 0: none
  };
  struct Writing {
    std::string bytes;  // the bytes [0, sent) have been sent
    size_t sent = 0;
    bool active = false;
  };

  std::unique_ptr<ByteStream> stream_;
  const std::string address_;  // of the peer, without its port
  const ServerConfig* config_;
  ConnectionOwner* owner_;
  State state_ = State::kHandshake;
  boost::asio::steady_timer read_timer_;
  boost::asio::steady_timer write_timer_;

  std::atomic<int64_t> idle_since_us_{0};
  bool reserve_ = false;
  bool reading_ = false;
  std::array<char, 16384> chunk_;
  boost::beast::flat_buffer buffer_;  // bytes received, not parsed yet
  std::optional<Parser> parser_;
  bool message_started_ = false;
  std::shared_ptr<HttpRequest> request_;  // made from the head; its body is set last
  bool keep_alive_ = true;
  bool head_only_ = false;  // the request is HEAD: its answer has no body
  bool http10_ = false;

  std::shared_ptr<Exchange> exchange_;
  std::string common_headers_;
  bool answer_complete_ = false;
  bool close_when_idle_ = false;
  Waiting pending_;  // sent after writing_
  Writing writing_;
};

}  // namespace skein
