#include "server/http/connection.h"

#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/memory_reserve.h"
#include "server/http/head_check.h"
#include "server/json/api_error.h"

namespace skein {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr int64_t kLingerTimeoutUs = 2'000'000;
constexpr int64_t kReserveTimeoutUs = 2'000'000;  // from the first byte to the end of the head
constexpr size_t kRequestIdBytesMax = 128;
// Free bytes of each body; the shared budget is charged for more.
constexpr size_t kFreeBodyBytes = 64 << 10;

// The path of a request target: without the query, percent-decoded.
std::string PathOf(std::string_view target) {
  target = target.substr(0, target.find('?'));
  if (const size_t scheme = target.find("://"); !target.starts_with('/') && scheme != target.npos) {
    // A proxy's form has the host before the path.
    const size_t path = target.find('/', scheme + 3);
    target = path != target.npos ? target.substr(path) : "/";
  }
  return PercentDecoded(target);
}

std::string HexSize(size_t size) {
  char text[2 * sizeof(size) + 1];
  std::snprintf(text, sizeof(text), "%zx", size);
  return text;
}

}  // namespace

// The responder of one request. Its calls reach the connection only until the request has been
// answered.
class Connection::Exchange final : public Responder,
                                   public std::enable_shared_from_this<Connection::Exchange> {
 public:
  explicit Exchange(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  void Send(HttpResponse response) override {
    Run([response = std::move(response)](Connection& c) { c.SendWhole(response); });
  }
  void BeginStream(HttpResponse head) override {
    Run([head = std::move(head)](Connection& c) {
      c.SendHead(head, std::nullopt);
      c.Flush();
    });
  }
  void Write(std::string bytes) override {
    Run([bytes = std::move(bytes)](Connection& c) { c.SendPiece(bytes); });
  }
  void End() override {
    Run([](Connection& c) { c.SendEnd(); });
  }
  void OnAbort(std::function<void(AbortReason)> callback) override {
    connection_->Post([self = shared_from_this(), callback = std::move(callback)]() mutable {
      if (self->done_) return;
      if (self->aborted_) callback(*self->aborted_);
      if (self->aborted_ != AbortReason::kPeerGone) self->on_abort_ = std::move(callback);
    });
  }
  void Post(std::function<void()> task) override { connection_->Post(std::move(task)); }
  void PostWork(std::function<void()> task) override {
    connection_->owner_->PostWork([self = shared_from_this(), task = std::move(task)] {
      try {
        const ReserveScope few_failed_allocations(ReserveScope::Share::kHalf);
        task();
      } catch (const std::bad_alloc&) {
        const ReserveScope no_failed_allocation;
        self->Send(OutOfMemoryResponse());
      }
    });
  }

  // The functions below run on the strand.
  void Hold(std::shared_ptr<void> token) { token_ = std::move(token); }
  void Abort(AbortReason reason) {
    if (aborted_ == AbortReason::kPeerGone || done_) return;
    aborted_ = reason;
    auto callback = on_abort_;
    if (reason != AbortReason::kShutdown) {
      aborted_ = AbortReason::kPeerGone;  // for callbacks that are set later
      on_abort_ = nullptr;
      token_.reset();
    }
    if (callback) callback(reason);
  }
  void Finish() {
    done_ = true;
    on_abort_ = nullptr;
    token_.reset();
  }

 private:
  template <typename Fn>
  void Run(Fn fn) {
    connection_->Post([self = shared_from_this(), fn = std::move(fn)] {
      Connection& connection = *self->connection_;
      const bool current = connection.exchange_ == self && connection.state_ == State::kAnswering &&
                           !connection.answer_complete_;
      if (current) fn(connection);
    });
  }

  std::shared_ptr<Connection> connection_;
  std::function<void(AbortReason)> on_abort_;
  std::optional<AbortReason> aborted_;
  bool done_ = false;
  std::shared_ptr<void> token_;
};

Connection::Connection(std::unique_ptr<ByteStream> stream, std::string address,
                       const ServerConfig* config, ConnectionOwner* owner)
    : stream_(std::move(stream)),
      address_(std::move(address)),
      config_(config),
      owner_(owner),
      read_timer_(stream_->strand()),
      write_timer_(stream_->strand()) {}

// On any thread, the engine's too: it may not fail.
void Connection::Post(std::function<void()> task) {
  const ReserveScope no_failed_allocation;
  // The loop of a server that has stopped would keep the task, and with it this object.
  if (stream_->strand().get_inner_executor().context().stopped()) return;
  boost::asio::post(stream_->strand(),
                    [this, self = shared_from_this(), task = std::move(task)] { Guard(task); });
}

// A failed allocation ends this connection, not the process.
template <typename Task>
void Connection::Guard(const Task& task) {
  try {
    const ReserveScope few_failed_allocations(ReserveScope::Share::kHalf);
    task();
  } catch (const std::bad_alloc&) {
    const ReserveScope no_failed_allocation;
    Close();
  }
}

void Connection::TakeFromReserve() {
  reserve_ = true;
  close_when_idle_ = true;
}

void Connection::Start() {
  Post([this] {
    if (state_ == State::kClosed) return;
    SetReadDeadline(config_->tls_handshake_timeout_us);
    stream_->AsyncHandshake([this, self = shared_from_this()](error_code error) {
      if (state_ == State::kClosed) return;
      if (error) return Close();
      Guard([this] {
        state_ = State::kReading;
        StartMessage();
        SetReadDeadline(reserve_ ? kReserveTimeoutUs : config_->header_timeout_us);
        Read();
      });
    });
  });
}

void Connection::BeginShutdown() {
  Post([this] {
    close_when_idle_ = true;
    if (state_ == State::kAnswering && exchange_ != nullptr)
      return AbortExchange(AbortReason::kShutdown);
    if (state_ == State::kReading || state_ == State::kHandshake) Close();
  });
}

void Connection::CloseNow() {
  Post([this] { Close(); });
}

void Connection::CloseWhenIdle() {
  Post([this] {
    close_when_idle_ = true;
    if (state_ == State::kReading && !message_started_) Close();
  });
}

// --- Reading -------------------------------------------------------------------------------------

void Connection::Read() {
  if (reading_ || state_ == State::kClosed) return;
  if (state_ == State::kAnswering && buffer_.size() >= config_->max_pipelined_bytes) return;
  reading_ = true;
  stream_->AsyncReadSome(boost::asio::buffer(chunk_),
                         [this, self = shared_from_this()](error_code error, size_t num_bytes) {
                           Guard([&] { OnRead(error, num_bytes); });
                         });
}

void Connection::OnRead(error_code error, size_t num_bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) return Close();
  // Failed memory allocation, most likely for the body, ends this request alone.
  try {
    TakeBytes(num_bytes);
  } catch (const std::bad_alloc&) {
    const ReserveScope no_failed_allocation;
    if (state_ != State::kReading) return Close();
    parser_.reset();
    buffer_.clear();
    if (request_ == nullptr) return Close();
    Refuse(OutOfMemoryResponse());
  }
  Read();
}

void Connection::TakeBytes(size_t num_bytes) {
  if (state_ != State::kLingering) {
    const auto space = buffer_.prepare(num_bytes);
    std::copy_n(chunk_.begin(), num_bytes, static_cast<char*>(space.data()));
    buffer_.commit(num_bytes);
  }
  if (state_ == State::kReading) Parse();
}

void Connection::StartMessage() {
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(static_cast<uint32_t>(config_->max_header_bytes));
  parser_->body_limit(config_->max_body_bytes);
  message_started_ = false;
  request_.reset();
  idle_since_us_.store(MonotonicClock().NowUs(), std::memory_order_relaxed);
}

void Connection::Parse() {
  const bool starts = buffer_.size() > 0 && !message_started_;
  if (starts) {
    message_started_ = true;
    idle_since_us_.store(0, std::memory_order_relaxed);
  }
  // The deadline counts from the first byte. Later bytes do not extend it.
  if (starts && !reserve_) SetReadDeadline(config_->header_timeout_us);
  if (!parser_->is_header_done()) {
    const size_t head_bytes = FindHead();
    if (head_bytes == 0 || !PutBytes(head_bytes) || !OnHead()) return;
  }
  while (buffer_.size() > 0 && !parser_->is_done() && !WaitsForShortestChunks()) {
    if (!PutBytes(buffer_.size())) break;
  }
  if (state_ != State::kReading) return;  // the request was refused
  if (parser_->is_done()) return Dispatch();
  // The parser takes all available bytes of a body and limits the size of the head itself. Bytes
  // that it leaves belong to the header of a chunk or to the trailers, whose end has not come yet.
  if (buffer_.size() > config_->max_header_bytes) {
    Refuse(ErrorResponse(431,
                         "a chunk's header, or the trailers, exceed " +
                             std::to_string(config_->max_header_bytes) + " bytes",
                         "invalid_request_error", "head_too_large"));
  }
}

bool Connection::WaitsForShortestChunks() const {
  constexpr std::string_view kShortest = "0\r\n\r\n";
  return parser_->chunked() && parser_->get().body().empty() && buffer_.size() < kShortest.size() &&
         *static_cast<const char*>(buffer_.data().data()) == kShortest.front();
}

size_t Connection::FindHead() {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const std::string_view bytes(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  if (bytes.empty()) return 0;
  const size_t end = bytes.substr(0, config_->max_header_bytes).find(kHeadEnd);
  if (end != bytes.npos) {
    const Status status = CheckHead(bytes.substr(0, end + kHeadEnd.size()));
    if (status.ok()) return end + kHeadEnd.size();
    Refuse(ErrorResponse(status));
    return 0;
  }
  if (!MayBecomeHead(bytes)) {
    Refuse(ErrorResponse(Status(StatusCode::kInvalidArgument, "this is not HTTP/1.1")));
  } else if (bytes.size() >= config_->max_header_bytes) {
    Refuse(ErrorResponse(
        431, "the request's head exceeds " + std::to_string(config_->max_header_bytes) + " bytes",
        "invalid_request_error", "head_too_large"));
  }
  return 0;
}

bool Connection::PutBytes(size_t num_bytes) {
  error_code error;
  const size_t used = parser_->put(boost::asio::buffer(buffer_.data(), num_bytes), error);
  buffer_.consume(used);
  if (error == http::error::need_more) error = {};
  if (error == http::error::body_limit) {
    Refuse(ErrorResponse(Status(
        StatusCode::kTooLarge,
        "the request's body exceeds " + std::to_string(config_->max_body_bytes) + " bytes")));
    return false;
  }
  if (error) {
    Refuse(ErrorResponse(
        Status(StatusCode::kInvalidArgument, "this is not HTTP/1.1: " + error.message())));
    return false;
  }
  return ChargeBody() && used > 0;
}

bool Connection::ChargeBody() {
  // A body of unknown length grows by more than its bytes.
  const auto& body = parser_->get().body();
  const size_t bytes = parser_->content_length() ? body.size() : body.capacity();
  if (bytes <= kFreeBodyBytes) return true;
  if (request_->body_share == nullptr) {
    request_->body_share = std::make_shared<BodyBudget::Share>(owner_->body_budget());
  }
  if (request_->body_share->GrowTo(bytes)) return true;
  Refuse(ErrorResponse(Status(StatusCode::kUnavailable,
                              "the bodies of all requests exceed " +
                                  std::to_string(config_->max_buffered_body_bytes) + " bytes")));
  return false;
}

bool Connection::OnHead() {
  request_ = Head(parser_->get());
  const std::string_view coding = request_->Header("content-encoding");
  if (!coding.empty() && !EqualsIgnoreCase(coding, "identity")) {
    HttpResponse response = ErrorResponse(
        415, "the Content-Encoding " + std::string(coding) + " is not supported, use identity",
        "invalid_request_error", "unsupported_content_encoding");
    response.headers.emplace_back("Accept-Encoding", "identity");
    Refuse(std::move(response));
    return false;
  }
  // A request that has been received as a whole is refused later, in the usual way: its connection
  // stays open.
  const auto body_bytes = parser_->content_length();
  if (parser_->is_done() || (body_bytes && buffer_.size() >= *body_bytes)) return true;
  if (auto refusal = owner_->RefuseHead(*request_)) {
    Refuse(*std::move(refusal));
    return false;
  }
  SetReadDeadline(config_->body_timeout_us);
  const auto& message = parser_->get();
  if (message.version() >= 11 &&
      EqualsIgnoreCase(std::string_view(message[http::field::expect]), "100-continue")) {
    pending_.bytes += "HTTP/1.1 100 Continue\r\n\r\n";
    Flush();
  }
  return true;
}

std::shared_ptr<HttpRequest> Connection::Head(const Parser::value_type& message) {
  auto request = std::make_shared<HttpRequest>();
  for (const auto& field : message) {
    request->headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request->request_id = std::string(request->Header("x-request-id"));
  if (request->request_id.empty() || request->request_id.size() > kRequestIdBytesMax) {
    request->request_id = owner_->MakeRequestId();
  }
  request->address = address_;
  request->from_reserve = reserve_;
  request->method = std::string(message.method_string());
  const std::string_view target(message.target());
  request->path = PathOf(target);
  if (const size_t mark = target.find('?'); mark != target.npos) {
    request->query = target.substr(mark + 1);
  }
  return request;
}

void Connection::Dispatch() {
  auto message = parser_->release();
  auto request = std::move(request_);
  request->body = std::move(message.body());
  keep_alive_ = message.keep_alive();
  http10_ = message.version() < 11;
  head_only_ = request->method == "HEAD";
  if (head_only_) request->method = "GET";

  state_ = State::kAnswering;
  SetReadDeadline(0);
  answer_complete_ = false;
  common_headers_ = owner_->CommonHeaders(*request);
  exchange_ = std::make_shared<Exchange>(shared_from_this());
  exchange_->Hold(owner_->OnRequest(std::move(request), exchange_));
}

void Connection::Refuse(HttpResponse response) {
  state_ = State::kAnswering;
  SetReadDeadline(0);
  keep_alive_ = false;
  http10_ = false;
  head_only_ = false;
  answer_complete_ = false;
  if (request_ == nullptr) request_ = Head(parser_->get());
  common_headers_ = owner_->CommonHeaders(*request_);
  // Its body goes with its share of the budget, not when the connection ends.
  request_.reset();
  parser_.reset();
  buffer_.clear();
  buffer_.shrink_to_fit();
  SendWhole(response);
}

// --- Writing -------------------------------------------------------------------------------------

void Connection::SendWhole(const HttpResponse& response) {
  SendHead(response, response.body.size());
  if (!head_only_) pending_.bytes += response.body;
  answer_complete_ = true;
  Flush();
}

void Connection::SendHead(const HttpResponse& response, std::optional<size_t> body_bytes) {
  if (close_when_idle_ || (http10_ && !body_bytes)) keep_alive_ = false;
  pending_.bytes += "HTTP/1.1 " + std::to_string(response.status) + " ";
  pending_.bytes += std::string(http::obsolete_reason(static_cast<http::status>(response.status)));
  pending_.bytes += "\r\n";
  if (!response.content_type.empty()) {
    pending_.bytes += "Content-Type: " + response.content_type + "\r\n";
  }
  for (const auto& [name, value] : response.headers) pending_.bytes += name + ": " + value + "\r\n";
  pending_.bytes += common_headers_;
  if (body_bytes) {
    if (response.status != 204) {
      pending_.bytes += "Content-Length: " + std::to_string(*body_bytes) + "\r\n";
    }
  } else if (!http10_) {
    pending_.bytes += "Transfer-Encoding: chunked\r\n";
  }
  pending_.bytes += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
}

void Connection::SendPiece(const std::string& bytes) {
  if (bytes.empty() || head_only_) return;  // an empty chunk would end the answer
  // The limit counts neither the bytes being written, which have their own time limit, nor the
  // first piece after them. A single long event therefore never ends a stream.
  if (pending_.bytes.size() > pending_.first_piece_end + config_->max_stream_queue_bytes) {
    AbortExchange(AbortReason::kSlowReader);
    return Close();
  }
  if (http10_) {
    pending_.bytes += bytes;
  } else {
    pending_.bytes += HexSize(bytes.size()) + "\r\n" + bytes + "\r\n";
  }
  if (pending_.first_piece_end == 0) pending_.first_piece_end = pending_.bytes.size();
  Flush();
}

void Connection::SendEnd() {
  if (!http10_ && !head_only_) pending_.bytes += "0\r\n\r\n";
  answer_complete_ = true;
  Flush();
}

void Connection::Flush() {
  if (writing_.active || state_ == State::kClosed) return;
  if (writing_.sent == writing_.bytes.size()) {
    writing_.bytes = std::exchange(pending_, {}).bytes;
    writing_.sent = 0;
    if (writing_.bytes.empty()) {
      if (answer_complete_ && state_ == State::kAnswering) OnAnswered();
      return;
    }
  }
  writing_.active = true;
  stream_->AsyncWriteSome(boost::asio::buffer(writing_.bytes) + writing_.sent,
                          [this, self = shared_from_this()](error_code error, size_t num_bytes) {
                            Guard([&] { OnWritten(error, num_bytes); });
                          });
  // The timer starts after the write. The write may send the bytes at once, and the peer then gets
  // them earlier.
  write_timer_.expires_after(std::chrono::microseconds(config_->write_timeout_us));
  write_timer_.async_wait([this, self = shared_from_this()](error_code error) {
    if (!error && writing_.active) Close();
  });
}

void Connection::OnWritten(error_code error, size_t num_bytes) {
  writing_.active = false;
  write_timer_.cancel();
  if (state_ == State::kClosed) return;
  if (error) return Close();
  writing_.sent += num_bytes;
  Flush();
}

void Connection::OnAnswered() {
  if (exchange_ != nullptr) exchange_->Finish();
  exchange_.reset();
  answer_complete_ = false;
  if (keep_alive_ && !close_when_idle_) {
    state_ = State::kReading;
    StartMessage();
    SetReadDeadline(config_->idle_timeout_us);
    Parse();
  } else {
    state_ = State::kLingering;
    buffer_.clear();
    SetReadDeadline(kLingerTimeoutUs);
    stream_->ShutdownSend();
  }
  Read();
}

// --- The end -------------------------------------------------------------------------------------

void Connection::AbortExchange(AbortReason reason) {
  if (exchange_ != nullptr) exchange_->Abort(reason);
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  AbortExchange(AbortReason::kPeerGone);
  state_ = State::kClosed;
  exchange_.reset();
  read_timer_.cancel();
  write_timer_.cancel();
  stream_->Close();
  owner_->OnClosed(this);
}

void Connection::SetReadDeadline(int64_t timeout_us) {
  if (timeout_us == 0) {
    read_timer_.cancel();
    return;
  }
  read_timer_.expires_after(std::chrono::microseconds(timeout_us));
  read_timer_.async_wait([this, self = shared_from_this()](error_code error) {
    // A move of the deadline does not cancel a wait that had already ended.
    if (!error && read_timer_.expiry() <= std::chrono::steady_clock::now()) {
      Guard([this] { OnReadDeadline(); });
    }
  });
}

void Connection::OnReadDeadline() {
  const bool inside_message = state_ == State::kReading && message_started_;
  if (inside_message) {
    return Refuse(ErrorResponse(408, "the request did not arrive in time", "invalid_request_error",
                                "request_timeout"));
  }
  if (state_ != State::kAnswering) Close();
}

}  // namespace skein
