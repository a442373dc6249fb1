#include "server/http/caller_policy.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

HttpRequest From(const std::string& host, const std::string& origin = "",
                 const std::string& content_type = "application/json") {
  HttpRequest request;
  request.method = "POST";
  request.headers = {{"Host", host}, {"Content-Type", content_type}};
  if (!origin.empty()) request.headers.emplace_back("Origin", origin);
  return request;
}

int StatusOf(const ServerConfig& config, const HttpRequest& request) {
  const auto refusal = RefuseForeign(config, request);
  return refusal ? refusal->status : 200;
}

TEST(CallerPolicy, ALocalServerWithoutKeysHasTheNamesOfTheLoopback) {
  const ServerConfig local;
  for (const char* host : {"localhost", "LocalHost:8000", "127.0.0.1:8000", "127.1.2.3", "[::1]:80",
                           "skein.localhost"}) {
    EXPECT_EQ(StatusOf(local, From(host)), 200) << host;
  }
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                           "10.0.0.1:8000", "[::2]", "notlocalhost"}) {
    EXPECT_EQ(StatusOf(local, From(host)), 403) << host;
  }
  ServerConfig keyed;
  keyed.api_keys.push_back({.key = "secret"});
  EXPECT_EQ(StatusOf(keyed, From("any.example")), 200);
  ServerConfig open;
  open.host = "0.0.0.0";
  EXPECT_EQ(StatusOf(open, From("any.example")), 200);
  ServerConfig listed;
  listed.allowed_hosts = {"mine.example", "[fe80::1]"};
  EXPECT_EQ(StatusOf(listed, From("Mine.Example:443")), 200);
  EXPECT_EQ(StatusOf(listed, From("[fe80::1]:443")), 200);
  EXPECT_EQ(StatusOf(listed, From("localhost")), 403);
  listed.allowed_hosts = {"*"};
  EXPECT_EQ(StatusOf(listed, From("any.example")), 200);
}

TEST(CallerPolicy, PagesOfOtherSitesDoNotDriveALocalServer) {
  const ServerConfig local;
  EXPECT_EQ(StatusOf(local, From("localhost:8000", "http://localhost:8000")), 200);
  EXPECT_EQ(StatusOf(local, From("localhost:8000", "http://127.0.0.1:3000")), 200);
  for (const char* origin : {"https://evil.example", "null", "http://localhost.evil.example",
                             "http://127.0.0.1.evil.example", "file://"}) {
    EXPECT_EQ(StatusOf(local, From("localhost:8000", origin)), 403) << origin;
    EXPECT_EQ(AllowedOrigin(local, From("localhost:8000", origin)), "") << origin;
  }
  ServerConfig open;
  open.host = "0.0.0.0";
  EXPECT_EQ(StatusOf(open, From("a.example:8000", "http://a.example:8000")), 200);
  EXPECT_EQ(StatusOf(open, From("a.example:8000", "http://b.example:8000")), 403);
  ServerConfig keyed;
  keyed.api_keys.push_back({.key = "secret"});
  EXPECT_EQ(StatusOf(keyed, From("localhost", "https://app.example")), 200);
  EXPECT_EQ(AllowedOrigin(keyed, From("localhost", "https://app.example")), "*");
}

TEST(CallerPolicy, OtherOriginsSendJsonThatCallsItselfJson) {
  ServerConfig config;
  config.allowed_origins = {"*"};
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8", "a/b+json"}) {
    EXPECT_EQ(StatusOf(config, From("localhost", "https://app.example", type)), 200) << type;
  }
  for (const char* type : {"text/plain", "", "text/plain; application/json", "multipart/form-data",
                           "application/jsonp"}) {
    EXPECT_EQ(StatusOf(config, From("localhost", "https://app.example", type)), 415) << type;
    EXPECT_EQ(StatusOf(config, From("localhost", "", type)), 200) << type;
    EXPECT_EQ(StatusOf(config, From("localhost", "http://localhost", type)), 200) << type;
  }
}

}  // namespace
}  // namespace skein
