#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "harness.h"
#include "memory_stream.h"
#include "server/http/connection.h"
#include "server/json/api_error.h"

namespace skein::fuzz {
namespace {

ServerConfig SmallConfig() {
  ServerConfig config;
  config.max_header_bytes = 512;
  config.max_body_bytes = 1024;
  config.max_pipelined_bytes = 256;
  return config;
}

// Answers each request by its path: whole, as a stream, or with an error; never twice.
class Owner final : public ConnectionOwner {
 public:
  struct Seen {
    std::string method, path, body;
    std::vector<std::pair<std::string, std::string>> headers;
    bool operator==(const Seen&) const = default;
  };

  std::shared_ptr<void> OnRequest(std::shared_ptr<const HttpRequest> request,
                                  std::shared_ptr<Responder> responder) override {
    seen.push_back({request->method, request->path, request->body, request->headers});
    const size_t kind = request->path.size() % 4;
    HttpResponse response;
    response.body = request->body;
    if (kind == 3) {
      responder->Send(ErrorResponse(Status(StatusCode::kNotFound, "no route " + request->path)));
    } else if (kind == 2) {
      responder->BeginStream(HttpResponse{});
      for (const char c : request->body.substr(0, 8)) responder->Write(std::string(2, c));
      responder->End();
    } else {
      responder->Send(std::move(response));
    }
    responder->Send(HttpResponse{});  // without effect
    ++num_open;
    return std::shared_ptr<void>(nullptr, [this](void*) { --num_open; });
  }
  std::optional<HttpResponse> RefuseHead(const HttpRequest& head) override {
    if (head.path != "/refused") return std::nullopt;
    return ErrorResponse(401, "no key", "authentication_error", "invalid_api_key");
  }
  BodyBudget* body_budget() override { return &budget; }
  std::string CommonHeaders(const HttpRequest&) override { return "x-request-id: 1\r\n"; }
  std::string MakeRequestId() override { return "1"; }
  void PostWork(std::function<void()> task) override { task(); }
  void OnClosed(Connection*) override { ++num_closed; }

  BodyBudget budget{1 << 20};
  std::vector<Seen> seen;
  int num_open = 0;
  int num_closed = 0;
};

struct Outcome {
  std::vector<Owner::Seen> seen;
  std::string received;
};

Outcome Talk(std::string_view bytes, size_t piece_bytes, size_t takes_bytes, size_t leaves_after) {
  static const ServerConfig config = SmallConfig();
  boost::asio::io_context io{1};
  Owner owner;
  MemoryStream::Peer peer{bytes, piece_bytes, takes_bytes, leaves_after, {}, false};
  {
    auto connection = std::make_shared<Connection>(
        std::make_unique<MemoryStream>(boost::asio::make_strand(io.get_executor()), &peer),
        "127.0.0.1", &config, &owner);
    connection->Start();
    io.poll();
    io.restart();
    connection->CloseNow();
  }
  io.poll();
  SKEIN_CHECK(owner.num_closed == 1 && owner.num_open == 0);
  return {std::move(owner.seen), std::move(peer.received)};
}

}  // namespace

// Two bytes say in which pieces the peer sends and takes; the rest is what it sends. The pieces
// change neither the requests that are understood nor, as long as the peer stays, their answers.
void FuzzHttpConnection(Bytes data) {
  constexpr size_t kMostBytes = 4096;
  if (data.size() < 2 || data.size() > kMostBytes) return;
  const std::string_view bytes = TextOf(data.subspan(2));
  const size_t piece_bytes = 1 + data[0] % 64;
  const bool leaves = data[1] >= 128;
  const Outcome whole = Talk(bytes, bytes.size() + 1, 1 << 20, ~size_t{0});
  const Outcome pieces = Talk(bytes, piece_bytes, 1 + data[1] % 128, leaves ? data[1] : ~size_t{0});
  if (leaves) {
    SKEIN_CHECK(pieces.seen.size() <= whole.seen.size());
    SKEIN_CHECK(std::equal(pieces.seen.begin(), pieces.seen.end(), whole.seen.begin()));
    return;
  }
  SKEIN_CHECK(pieces.seen == whole.seen);
}

}  // namespace skein::fuzz
