// Tests the server, over the fakes, against clients that send what no honest client sends.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

using HostileClientTest = ServerTest;

constexpr char kHead[] = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n";

TEST_F(HostileClientTest, NoBodyIsReadAsTheNextRequest) {
  Start();
  const std::string smuggled = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const char* framing :
       {"Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length: 0\r\nContent-Length: 0\r\n", "X: y\r\n Transfer-Encoding: chunked\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"}) {
    Client client(port_);
    client.SendRaw(kHead + std::string(framing) + "\r\n" + smuggled);
    const Answer answer = client.Read();
    EXPECT_EQ(answer.status, 400) << framing;
    EXPECT_EQ(answer.Field("Connection"), "close") << framing;
    EXPECT_TRUE(client.AtEnd()) << framing;
  }
  Client nameless(port_);
  nameless.SendRaw("GET /health HTTP/1.1\r\n\r\n");
  EXPECT_EQ(nameless.Read().status, 400);
  EXPECT_TRUE(nameless.AtEnd());
}

TEST_F(HostileClientTest, TrailersAreNoFieldsOfTheRequest) {
  ServerConfig config;
  config.api_keys.push_back({.key = "secret"});
  Start(config);
  Client client(port_);
  client.SendRaw(std::string(kHead) +
                 "Transfer-Encoding: chunked\r\n\r\n"
                 "11\r\n{\"prompt\": \"abc\"}\r\n0\r\nAuthorization: Bearer secret\r\n\r\n");
  EXPECT_EQ(client.Read().status, 401);
}

TEST_F(HostileClientTest, CodedBodiesAreRefusedByName) {
  Start();
  const Answer answer = Post("/tokenize", "\x1f\x8b\x08", {{"Content-Encoding", "gzip"}});
  EXPECT_EQ(answer.status, 415);
  EXPECT_EQ(answer.Field("Accept-Encoding"), "identity");
  EXPECT_EQ(Post("/tokenize", R"({"prompt": "abc"})", {{"Content-Encoding", "identity"}}).status,
            200);
}

TEST_F(HostileClientTest, TheKeyIsCheckedBeforeTheBodyArrives) {
  ServerConfig config;
  config.api_keys.push_back({.key = "secret"});
  Start(config);
  Client stranger(port_);
  stranger.SendRaw(std::string(kHead) + "Content-Length: 1000000\r\n\r\n{");
  EXPECT_EQ(stranger.Read().status, 401);
  EXPECT_TRUE(stranger.AtEnd());
  Client expecting(port_);
  expecting.SendRaw(std::string(kHead) + "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n");
  EXPECT_TRUE(expecting.ReadSome().starts_with("HTTP/1.1 401"));
}

// Found by the fuzzer: the end of a body without chunks came in pieces, and the process ended.
TEST_F(HostileClientTest, AChunkedBodyMayComeBytewise) {
  Start();
  for (const std::string body : {"0\r\n\r\n", "000\r\n\r\n", "0;a=b\r\nX: y\r\n\r\n",
                                 "1\r\n \r\n0\r\n\r\n", "\r\n0\r\n\r\n"}) {
    Client client(port_);
    client.SendRaw("GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char byte : body) client.SendRaw(std::string(1, byte));
    const int status = client.Read().status;
    EXPECT_TRUE(status == 200 || status == 400) << body << status;
  }
  EXPECT_EQ(Client(port_).Get("/health").status, 200);
}

TEST_F(HostileClientTest, AllBodiesTogetherHaveOneBudget) {
  ServerConfig config;
  config.max_buffered_body_bytes = 1 << 20;
  Start(config);
  const std::string half(600 << 10, ' ');
  const std::string head = std::string(kHead) + "Content-Length: 1000000\r\n\r\n";
  // A body takes its share of the budget only once the server has read it; the later of two bodies
  // then fails. If the second body is read before the first, the first one fails, and both are sent
  // again.
  std::unique_ptr<Client> first;
  Answer answer;
  EXPECT_TRUE(Eventually([&] {
    first = std::make_unique<Client>(port_);
    first->SendRaw(head + half);
    Client second(port_);
    second.SendRaw(head + half + std::string(1000000 - half.size(), ' '));
    answer = second.Read();
    return answer.status == 503;
  }));
  EXPECT_FALSE(answer.Field("Retry-After").empty());
  EXPECT_EQ(Post("/tokenize", R"({"prompt": "abc"})").status, 200);  // short bodies need no budget
  first.reset();
  EXPECT_TRUE(Eventually([&] {
    Client third(port_);
    third.SendRaw(head + std::string(1000000, ' '));
    return third.Read().status == 400;  // the whole body was read: it is no JSON
  }));
}

TEST_F(HostileClientTest, AForeignPageIsRefused) {
  Start();
  const std::string body = R"({"prompt": "abc"})";
  EXPECT_EQ(Post("/tokenize", body, {{"Origin", "https://evil.example"}}).status, 403);
  Client rebound(port_);
  rebound.SendRaw("POST /tokenize HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 17\r\n\r\n" +
                  body);
  EXPECT_EQ(rebound.Read().status, 403);
  EXPECT_EQ(Post("/tokenize", body).status, 200);
}

// At the limit of connections, a new connection closes the one that has been idle longest.
TEST_F(HostileClientTest, TheOldestIdleConnectionMakesWay) {
  ServerConfig config;
  config.max_connections = 2;
  Start(config);
  Client first(port_);
  EXPECT_EQ(first.Get("/health").status, 200);  // only then is it surely idle before the second
  Client second(port_);
  EXPECT_EQ(second.Get("/health").status, 200);
  Client third(port_);
  EXPECT_EQ(third.Get("/health").status, 200);
  EXPECT_TRUE(first.AtEnd());
  EXPECT_EQ(second.Get("/health").status, 200);
}

TEST_F(HostileClientTest, HealthAndMetricsHaveAReserve) {
  ServerConfig config;
  config.max_connections = 2;
  Start(config);
  engine_.set_paused(true);
  Client first(port_), second(port_);
  for (Client* client : {&first, &second}) {
    client->SendRequest("POST", "/v1/completions", R"({"prompt": "Hi"})");
  }
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 2; }));
  for (const char* path : {"/health", "/metrics"}) {
    Client reserve(port_);
    const Answer answer = reserve.Get(path);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.Field("Connection"), "close");
    EXPECT_TRUE(reserve.AtEnd());
  }
  EXPECT_EQ(Post("/tokenize", R"({"prompt": "abc"})").status, 503);
  {
    std::vector<std::unique_ptr<Client>> silent;  // more than the reserve can hold
    for (int i = 0; i < kReserveConnections; ++i) {
      silent.push_back(std::make_unique<Client>(port_));
    }
    EXPECT_TRUE(Eventually([&] { return Client(port_).Get("/health").status == 200; }));
  }
  engine_.set_paused(false);
  EXPECT_EQ(first.Read().status, 200);
  EXPECT_EQ(second.Read().status, 200);
}

TEST_F(HostileClientTest, AnAddressMayHaveALimit) {
  ServerConfig config;
  config.max_connections_per_address = 1;
  Start(config);
  auto first = std::make_unique<Client>(port_);
  EXPECT_EQ(first->Get("/health").status, 200);
  EXPECT_TRUE(Client(port_).AtEnd());
  first.reset();
  EXPECT_TRUE(Eventually([&] { return Client(port_).Get("/health").status == 200; }));
}

}  // namespace
}  // namespace skein::testing
