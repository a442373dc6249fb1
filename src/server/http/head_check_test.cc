#include "server/http/head_check.h"

#include <gtest/gtest.h>

#include <string>

namespace skein {
namespace {

using namespace std::string_literals;

Status Check(const std::string& fields, const std::string& version = "HTTP/1.1") {
  return CheckHead("POST /tokenize " + version + "\r\n" + fields + "\r\n");
}

TEST(HeadCheck, OrdinaryHeadsPass) {
  for (const char* fields : {
           "Host: localhost\r\n",
           "host:localhost:8000\r\nContent-Length: 5\r\n",
           "Host: [::1]:8000\r\nContent-Length:\t5 \r\n",
           "Host:\r\nTransfer-Encoding: chunked\r\n",
           "Host: a.example\r\ntransfer-encoding:\tChunked \r\n",
           "Host: a_b\r\nAuthorization: Bearer a=b/c\r\nX-Empty:\r\nX: a:b \xC3\xA9\r\n",
       }) {
    EXPECT_TRUE(Check(fields).ok()) << fields << Check(fields).message();
  }
  EXPECT_TRUE(Check("", "HTTP/1.0").ok());
  EXPECT_TRUE(Check("Content-Length: 3\r\n", "HTTP/1.0").ok());
}

// Cases from public lists of request smuggling. Each of them makes two programs disagree about the
// end of the body, or about a field.
TEST(HeadCheck, AmbiguousFramingIsRefused) {
  for (const std::string& fields : {
           "Transfer-Encoding: xchunked\r\n"s,
           "Transfer-Encoding: gzip\r\n"s,
           "Transfer-Encoding: identity\r\n"s,
           "Transfer-Encoding: chunked, identity\r\n"s,
           "Transfer-Encoding: identity, chunked\r\n"s,
           "Transfer-Encoding: gzip, chunked\r\n"s,
           "Transfer-Encoding: chunked, chunked\r\n"s,
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n"s,
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"s,
           "Transfer-Encoding: \"chunked\"\r\n"s,
           "Transfer-Encoding: 'chunked'\r\n"s,
           "Transfer-Encoding: chunked;q=1\r\n"s,
           "Transfer-Encoding: \x0b"
           "chunked\r\n"s,
           "Transfer-Encoding: chunked\x0c\r\n"s,
           "Transfer-Encoding: chunk\r\n"s,
           "Transfer-Encoding:\r\n"s,
           "Transfer-Encoding : chunked\r\n"s,
           "Transfer-Encoding\t: chunked\r\n"s,
           " Transfer-Encoding: chunked\r\n"s,
           "\tTransfer-Encoding: chunked\r\n"s,
           "Transfer-Encoding:\r\n chunked\r\n"s,
           "Transfer-Encoding: x\r\n\tchunked\r\n"s,
           "X: x\r\n Transfer-Encoding: chunked\r\n"s,
           "X: x\nTransfer-Encoding: chunked\r\n"s,
           "X: x\rTransfer-Encoding: chunked\r\n"s,
           "X: x\r\n\rTransfer-Encoding: chunked\r\n"s,
           "Transfer-Encoding\n: chunked\r\n"s,
           "Transfer-Encoding: chunked\0\r\n"s,
           "Transfer-\0Encoding: chunked\r\n"s,
           "Transfer\x7f"
           "Encoding: chunked\r\n"s,
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"s,
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"s,
           "Content-Length: 5\r\nContent-Length: 5\r\n"s,
           "Content-Length: 5\r\ncontent-length: 6\r\n"s,
           "Content-Length: 5, 5\r\n"s,
           "Content-Length: +5\r\n"s,
           "Content-Length: -5\r\n"s,
           "Content-Length: 0x5\r\n"s,
           "Content-Length: 5 5\r\n"s,
           "Content-Length: 5.0\r\n"s,
           "Content-Length: 1_0\r\n"s,
           "Content-Length:\r\n"s,
           "Content-Length: 18446744073709551621\r\n"s,
           "Content-Length : 5\r\n"s,
           "Content-Length: \r\n 5\r\n"s,
           ": 5\r\n"s,
           "no colon\r\n"s,
       }) {
    EXPECT_EQ(Check("Host: t\r\n" + fields).code(), StatusCode::kInvalidArgument) << fields;
  }
  EXPECT_FALSE(Check("Host: t\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.0").ok());
  EXPECT_FALSE(CheckHead("POST / HTTP/1.1\nHost: t\r\n\r\n").ok());
  EXPECT_FALSE(CheckHead("POST /\rx HTTP/1.1\r\nHost: t\r\n\r\n").ok());
  EXPECT_FALSE(CheckHead("GET / HTTP/1.1\r\nHost: t\r\n").ok());
}

TEST(HeadCheck, HostIsOneHost) {
  for (const char* fields : {"", "X: y\r\n", "Host: a\r\nHost: a\r\n", "Host: a\r\nhost: b\r\n",
                             "Host: a b\r\n", "Host: a,b\r\n", "Host: a/b\r\n", "Host: u@a\r\n"}) {
    EXPECT_EQ(Check(fields).code(), StatusCode::kInvalidArgument) << fields;
  }
}

TEST(HeadCheck, BeginningsOfHeads) {
  for (const std::string& bytes : {""s, "P"s, "POST / HTTP/1.1\r\nHo"s, "GET / HTTP/1.1\r"s}) {
    EXPECT_TRUE(MayBecomeHead(bytes)) << bytes;
  }
  for (const std::string& bytes : {"\x16\x03\x01"s, "\0"s, " GET"s, "\r\nGET"s, "GET /\n"s}) {
    EXPECT_FALSE(MayBecomeHead(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace skein
