#include "testing/http_client.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "server/http/http_message.h"
#include "testing/read_answer.h"

namespace skein::testing {

using boost::system::error_code;

Json Answer::json() const { return ParseJson(body).value_or(Json("not JSON: " + body)); }

std::string Answer::Field(const std::string& name) const {
  for (const auto& [key, value] : fields) {
    if (EqualsIgnoreCase(key, name)) return value;
  }
  return {};
}

std::vector<std::string> Answer::Events() const {
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

struct Client::Socket {
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket tcp{io};
  boost::beast::flat_buffer buffer;
  bool connected = false;
};

Client::Client(uint16_t port, int receive_bytes) : socket_(std::make_unique<Socket>()) {
  boost::asio::ip::tcp::socket& tcp = socket_->tcp;
  error_code error;
  tcp.open(boost::asio::ip::tcp::v4(), error);
  if (receive_bytes > 0) {
    tcp.set_option(boost::asio::socket_base::receive_buffer_size(receive_bytes), error);
  }
  tcp.connect({boost::asio::ip::address_v4::loopback(), port}, error);
  socket_->connected = !error;
}

Client::~Client() = default;

bool Client::connected() const { return socket_->connected; }

void Client::SendRaw(const std::string& bytes) {
  error_code error;
  boost::asio::write(socket_->tcp, boost::asio::buffer(bytes), error);
}

void Client::SendRequest(const std::string& method, const std::string& path,
                         const std::string& body, const Headers& headers) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  SendRaw(text);
}

Answer Client::Read() { return ReadAnswer(socket_->tcp, &socket_->buffer); }

Answer Client::Get(const std::string& path, const Headers& headers) {
  SendRequest("GET", path, "", headers);
  return Read();
}

Answer Client::Post(const std::string& path, const std::string& body, const Headers& headers) {
  SendRequest("POST", path, body, headers);
  return Read();
}

void Client::Close() {
  error_code ignored;
  socket_->tcp.close(ignored);
}

bool Client::AtEnd() {
  char byte;
  error_code error;
  socket_->tcp.read_some(boost::asio::buffer(&byte, 1), error);
  return error == boost::asio::error::eof || error == boost::asio::error::connection_reset;
}

std::string Client::ReadSome() {
  char bytes[4096];
  error_code error;
  const size_t n = socket_->tcp.read_some(boost::asio::buffer(bytes), error);
  return std::string(bytes, n);
}

}  // namespace skein::testing
