#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/body_budget.h"

namespace skein {

struct HttpRequest {
  std::string method;
  std::string path;   // percent-decoded, without the query
  std::string query;  // after the question mark, not decoded
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string request_id;     // x-request-id of the client, or a generated id
  std::string address;        // of the client, without its port
  bool from_reserve = false;  // the connection's place is a reserved one: no work
  // The bytes that `body` takes of the budget; null: none.
  std::shared_ptr<BodyBudget::Share> body_share;

  // The first header of this name, compared without case; empty if there is none.
  std::string_view Header(std::string_view name) const;
  // The first value of `name` in the query, percent-decoded; nullopt if there is none.
  std::optional<std::string> Parameter(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

enum class AbortReason {
  kPeerGone,    // the client no longer reads the answer
  kSlowReader,  // the client reads too slowly: the queue limit of the stream was exceeded
  kShutdown,    // the server shuts down: the request must soon end with an error
};

// Receives the answer to one request: either one Send, or BeginStream, any number of Write, and
// End.
// Thread rule: every member may be called from any thread; calls after the end of the connection
// have no effect. Callbacks run on the connection's strand, one at a time.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Send(HttpResponse response) = 0;
  // Sends the head of an answer. The body follows in pieces; each is sent as soon as the peer
  // accepts it.
  virtual void BeginStream(HttpResponse head) = 0;
  virtual void Write(std::string bytes) = 0;
  virtual void End() = 0;
  // `callback` runs when the request should end early, or at once if that has happened already.
  // After kShutdown an answer is still expected, and kPeerGone may follow. The callback does not
  // run once the answer is complete.
  virtual void OnAbort(std::function<void(AbortReason)> callback) = 0;
  virtual void Post(std::function<void()> task) = 0;
  // Runs `task`, which would delay other connections, on a thread that runs no callbacks.
  virtual void PostWork(std::function<void()> task) = 0;
};

// `text` with each %XX replaced by its byte.
std::string PercentDecoded(std::string_view text);

// Compares two texts without regard to case.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

}  // namespace skein
