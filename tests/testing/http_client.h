#pragma once

// A blocking HTTP client for the server's tests.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/json/json.h"

namespace skein::testing {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Answer {
  int status = 0;
  std::string body;
  Headers fields;

  Json json() const;
  std::string Field(const std::string& name) const;  // the first of that name; empty if none
  // The data of the SSE events.
  std::vector<std::string> Events() const;
};

class Client {
 public:
  // receive_bytes: the size of the socket's receive buffer; 0 leaves it.
  explicit Client(uint16_t port, int receive_bytes = 0);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const;
  void SendRaw(const std::string& bytes);
  void SendRequest(const std::string& method, const std::string& path, const std::string& body,
                   const Headers& headers = {});
  // status 0: the connection ended without a whole answer.
  Answer Read();
  Answer Get(const std::string& path, const Headers& headers = {});
  Answer Post(const std::string& path, const std::string& body, const Headers& headers = {});
  void Close();
  // True if the server has closed: nothing more arrives.
  bool AtEnd();
  std::string ReadSome();

 private:
  struct Socket;  // keeps Asio and Beast out of this header

  std::unique_ptr<Socket> socket_;
};

}  // namespace skein::testing
