#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "bench/serving/client.h"
#include "server/json/json.h"

namespace skein {

// One connection to a server. Requests are sent one after the other, and each call waits for the
// answer. One thread.
class JsonClient {
 public:
  // `api_key` is sent as a bearer token unless empty.
  JsonClient(const ServerUrl& url, const std::string& api_key);
  ~JsonClient();

  // Returns the JSON of a 200 answer. For any other result, the error says what came, and the next
  // call connects again. Waits at most `timeout_us` for each piece.
  Result<Json> Post(const std::string& path, const Json& body, TimeUs timeout_us = 600'000'000);

 private:
  struct State;
  Result<Json> TryPost(const std::string& path, const std::string& body, TimeUs timeout_us);

  const ServerUrl url_;
  const std::string api_key_;
  std::unique_ptr<State> state_;  // null: not connected
};

}  // namespace skein
