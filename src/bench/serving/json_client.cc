#include "bench/serving/json_client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <utility>

#include "bench/serving/protocol.h"

namespace skein {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

Status Broken(const char* step, const error_code& error) {
  return Status(StatusCode::kUnavailable, std::string(step) + ": " + error.message());
}

}  // namespace

struct JsonClient::State {
  asio::io_context io;
  tcp::socket socket{io};
  boost::beast::flat_buffer buffer;
};

JsonClient::JsonClient(const ServerUrl& url, const std::string& api_key)
    : url_(url), api_key_(api_key) {}
JsonClient::~JsonClient() = default;

Result<Json> JsonClient::Post(const std::string& path, const Json& body, TimeUs timeout_us) {
  Result<Json> answer = TryPost(path, DumpJson(body), timeout_us);
  if (!answer.ok()) state_.reset();
  return answer;
}

Result<Json> JsonClient::TryPost(const std::string& path, const std::string& body,
                                 TimeUs timeout_us) {
  error_code error;
  if (!state_) {
    state_ = std::make_unique<State>();
    tcp::resolver resolver(state_->io);
    const auto peers = resolver.resolve(url_.host, url_.port, error);
    if (error) return Broken("resolve", error);
    asio::connect(state_->socket, peers, error);
    if (error) return Broken("connect", error);
    state_->socket.set_option(tcp::no_delay(true), error);
    const timeval timeout = {timeout_us / 1'000'000, timeout_us % 1'000'000};
    setsockopt(state_->socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  }
  http::request<http::string_body> request(http::verb::post, url_.path + path, 11);
  request.set(http::field::host, url_.host + ":" + url_.port);
  request.set(http::field::content_type, "application/json");
  if (!api_key_.empty()) request.set(http::field::authorization, "Bearer " + api_key_);
  request.body() = body;
  request.prepare_payload();
  http::write(state_->socket, request, error);
  if (error) return Broken("send", error);
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  http::read(state_->socket, state_->buffer, parser, error);
  if (error) return Broken("receive", error);
  const auto& response = parser.get();
  if (response.result_int() != 200) {
    return Status(StatusCode::kUnavailable,
                  DescribeHttpError(static_cast<int>(response.result_int()), response.body()));
  }
  if (!response.keep_alive()) state_.reset();
  std::string why;
  std::optional<Json> json = ParseJson(response.body(), &why);
  if (!json) return Status(StatusCode::kInternal, "the answer is not JSON: " + why);
  return *std::move(json);
}

}  // namespace skein
