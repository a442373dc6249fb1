#pragma once

// A blocking HTTP client for the server's tests.

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/json/json.h"

namespace skein::testing {

struct Answer {
  int status = 0;
  std::string body;
  boost::beast::http::fields fields;

  Json json() const { return ParseJson(body).value_or(Json("not JSON: " + body)); }
  std::string Field(const char* name) const { return std::string(fields[name]); }
  // The data of the SSE events.
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    size_t at = 0;
    while (at < body.size()) {
      const size_t end = body.find("\n\n", at);
      if (end == std::string::npos || body.compare(at, 6, "data: ") != 0) {
        events.push_back("broken framing: " + body.substr(at));
        break;
      }
      events.push_back(body.substr(at + 6, end - at - 6));
      at = end + 2;
    }
    return events;
  }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

template <typename Stream>
Answer ReadAnswer(Stream& stream, boost::beast::flat_buffer* buffer) {
  namespace http = boost::beast::http;
  boost::system::error_code error;
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  http::read(stream, *buffer, parser, error);
  Answer answer;
  if (error) return answer;
  answer.status = static_cast<int>(parser.get().result_int());
  answer.body = parser.get().body();
  answer.fields = parser.get().base();
  return answer;
}

class Client {
 public:
  // receive_bytes: the size of the socket's receive buffer; 0 leaves it.
  explicit Client(uint16_t port, int receive_bytes = 0) : socket_(io_) {
    boost::system::error_code error;
    socket_.open(boost::asio::ip::tcp::v4(), error);
    if (receive_bytes > 0) {
      socket_.set_option(boost::asio::socket_base::receive_buffer_size(receive_bytes), error);
    }
    socket_.connect({boost::asio::ip::address_v4::loopback(), port}, error);
    connected_ = !error;
  }

  bool connected() const { return connected_; }
  void SendRaw(const std::string& bytes) {
    boost::system::error_code error;
    boost::asio::write(socket_, boost::asio::buffer(bytes), error);
  }
  void SendRequest(const std::string& method, const std::string& path, const std::string& body,
                   const Headers& headers = {}) {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: test\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    SendRaw(text);
  }
  // status 0: the connection ended without a whole answer.
  Answer Read() { return ReadAnswer(socket_, &buffer_); }
  Answer Get(const std::string& path, const Headers& headers = {}) {
    SendRequest("GET", path, "", headers);
    return Read();
  }
  Answer Post(const std::string& path, const std::string& body, const Headers& headers = {}) {
    SendRequest("POST", path, body, headers);
    return Read();
  }
  void Close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }
  // True if the server has closed: nothing more arrives.
  bool AtEnd() {
    char byte;
    boost::system::error_code error;
    socket_.read_some(boost::asio::buffer(&byte, 1), error);
    return error == boost::asio::error::eof || error == boost::asio::error::connection_reset;
  }
  std::string ReadSome() {
    char bytes[4096];
    boost::system::error_code error;
    const size_t n = socket_.read_some(boost::asio::buffer(bytes), error);
    return std::string(bytes, n);
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
  bool connected_ = false;
};

}  // namespace skein::testing
