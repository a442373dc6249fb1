#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

struct HttpRequest {
  std::string method;
  std::string path;  // percent-decoded, without the query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string request_id;  // the client's x-request-id, else made

  // The first header of that name, compared without case; empty if none.
  std::string_view Header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

enum class AbortReason {
  kPeerGone,    // nobody reads an answer any more
  kSlowReader,  // likewise: the queue limit of the stream was exceeded
  kShutdown,    // the server ends: answer with an error, soon
};

// Where the answer to one request goes: either Send once, or BeginStream, any number of Write, End.
// Thread rule: every member may be called from any thread; calls after the connection is gone do
// nothing. Callbacks run on the connection's strand, one at a time.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Send(HttpResponse response) = 0;
  // Sends the head; the body follows in pieces, each delivered as soon as the peer takes it.
  virtual void BeginStream(HttpResponse head) = 0;
  virtual void Write(std::string bytes) = 0;
  virtual void End() = 0;
  // `callback` runs when the request should end early, at once if that has happened already. With
  // kShutdown an answer is still expected and can be followed by kPeerGone. Not called once the
  // answer is complete.
  virtual void OnAbort(std::function<void(AbortReason)> callback) = 0;
  virtual void Post(std::function<void()> task) = 0;
  // Runs `task` elsewhere than the callbacks, for what would hold up other connections.
  virtual void PostWork(std::function<void()> task) = 0;
};

// Without case; of equal length.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

}  // namespace skein
