#pragma once

// An HTTP answer read from any stream of Asio. It costs its includers seconds: http_client.h is for
// plain connections.

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include "testing/http_client.h"

namespace skein::testing {

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
  for (const auto& field : parser.get().base()) {
    answer.fields.emplace_back(field.name_string(), field.value());
  }
  return answer;
}

}  // namespace skein::testing
