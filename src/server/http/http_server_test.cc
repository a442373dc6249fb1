#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

using HttpServerTest = ServerTest;

void ExpectError(const Answer& answer, int status, const std::string& type) {
  EXPECT_EQ(answer.status, status) << answer.body;
  const Json body = answer.json();
  ASSERT_TRUE(body.contains("error")) << answer.body;
  EXPECT_EQ(body["error"]["type"], type);
  EXPECT_TRUE(body["error"]["message"].is_string());
  EXPECT_TRUE(body["error"].contains("param"));
  EXPECT_TRUE(body["error"].contains("code"));
}

TEST_F(HttpServerTest, LoadingThenServingThenDraining) {
  Start({}, /*set_models=*/false);
  EXPECT_EQ(Get("/livez").status, 200);
  for (const char* path : {"/health", "/readyz", "/ping"}) {
    const Answer answer = Get(path);
    ExpectError(answer, 503, "unavailable_error");
    EXPECT_EQ(answer.json()["error"]["message"], "Loading model");
    EXPECT_EQ(answer.json()["error"]["code"], 503);
  }
  ExpectError(Complete(""), 503, "unavailable_error");
  EXPECT_EQ(Get("/metrics").status, 200);

  server_->SetModels(Registry());
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/ping").status, 200);
  EXPECT_EQ(Get("/readyz").status, 200);
  EXPECT_EQ(Get("/version").json()["version"], SKEIN_VERSION);
  EXPECT_EQ(Complete("").status, 200);

  engine_.set_paused(true);
  Client running(port_);
  running.SendRequest("POST", "/v1/completions", R"({"prompt": "Hi"})");
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  server_->BeginDrain();
  EXPECT_EQ(Get("/health").status, 503);
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/livez").status, 200);
  ExpectError(Complete(""), 503, "unavailable_error");
  EXPECT_NE(Get("/metrics").body.find("vllm:num_requests_running"), std::string::npos);
  EXPECT_FALSE(server_->Drained());
  engine_.set_paused(false);
  EXPECT_EQ(running.Read().status, 200);
  EXPECT_TRUE(Eventually([&] { return server_->Drained(); }));
}

TEST_F(HttpServerTest, AbortAnswersWhatStillRuns) {
  Start();
  engine_.set_paused(true);
  Client running(port_);
  running.SendRequest("POST", "/v1/completions", R"({"prompt": "Hi"})");
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  server_->Abort();
  ExpectError(running.Read(), 503, "unavailable_error");
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0 && server_->Drained(); }));
  EXPECT_EQ(engine_.num_cancelled(), 1);
}

TEST_F(HttpServerTest, StopWithWorkRunningCancelsIt) {
  Start();
  engine_.set_paused(true);
  Client running(port_);
  running.SendRequest("POST", "/v1/completions", R"({"prompt": "Hi"})");
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  server_->Stop();
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
  EXPECT_EQ(running.Read().status, 0);
}

// Sanitizers see whether what the engine still holds uses the server.
TEST_F(HttpServerTest, TheEngineMayHoldAResponderLonger) {
  engine_.set_holds_views(true);
  ServerConfig config;
  config.api_keys.push_back({.key = "secret"});
  Start(std::move(config));
  Client asking(port_);
  asking.SendRequest("GET", "/scheduler", "", {{"Authorization", "Bearer secret"}});
  ASSERT_TRUE(Eventually([&] { return engine_.num_held_views() == 1; }));
  server_.reset();
  EXPECT_EQ(asking.Read().status, 0);
}

TEST_F(HttpServerTest, UnknownRouteWrongMethodAndBadJson) {
  Start();
  ExpectError(Get("/nothing"), 404, "invalid_request_error");
  const Answer wrong = Get("/v1/completions");
  ExpectError(wrong, 405, "invalid_request_error");
  EXPECT_EQ(wrong.Field("Allow"), "POST");
  for (const char* body : {"", "{", "[1]", "nonsense", "{\"prompt\": \"a\"} x"}) {
    ExpectError(Post("/v1/completions", body), 400, "invalid_request_error");
  }
}

TEST_F(HttpServerTest, BodiesThatAreTooDeepOrTooWideAreRefused) {
  Start();
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const char* field : {"tools", "messages", "x", "chat_template_kwargs"}) {
    const std::string head = R"({"messages": [{"role": "user", "content": "a"}], ")";
    ExpectError(Post("/v1/chat/completions", head + field + "\": " + deep + "}"), 400,
                "invalid_request_error");
  }
  std::string bias = R"({"prompt": "a", "logit_bias": {"0": 0)";
  for (int i = 1; i < 100'000; ++i) bias += ", \"" + std::to_string(i) + "\": 0";
  ExpectError(Post("/v1/completions", bias + "}}"), 400, "invalid_request_error");
  EXPECT_EQ(Complete("").status, 200);
}

TEST_F(HttpServerTest, KeyGuardsEveryRouteThatWorks) {
  ServerConfig config;
  config.api_keys = {{.key = "secret"}};
  Start(config);
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"}) {
    for (const Headers& headers :
         {Headers{}, Headers{{"Authorization", "Bearer secre"}},
          Headers{{"Authorization", "Bearer secret2"}}, Headers{{"Authorization", "secret"}}}) {
      ExpectError(Post(path, "{}", headers), 401, "authentication_error");
    }
  }
  ExpectError(Get("/v1/models"), 401, "authentication_error");
  EXPECT_EQ(Get("/v1/models", {{"authorization", "bearer secret"}}).status, 200);
  for (const char* path : {"/health", "/ping", "/metrics", "/"}) {
    EXPECT_EQ(Get(path).status, 200);
  }
}

TEST_F(HttpServerTest, RequestIdIsEchoedOrMade) {
  Start();
  EXPECT_EQ(Get("/health", {{"X-Request-Id", "my-id"}}).Field("x-request-id"), "my-id");
  const std::string made = Get("/health").Field("x-request-id");
  EXPECT_EQ(made.size(), 32u);
  EXPECT_NE(Get("/health").Field("x-request-id"), made);
  EXPECT_EQ(Get("/health", {{"X-Request-Id", std::string(1000, 'x')}}).Field("x-request-id").size(),
            32u);
}

TEST_F(HttpServerTest, CrossOriginRequests) {
  ServerConfig config;
  config.allowed_origins = {"https://good.example"};
  Start(config);
  const Headers good = {{"Origin", "https://good.example"},
                        {"Access-Control-Request-Headers", "authorization"}};
  Client client(port_);
  client.SendRequest("OPTIONS", "/v1/completions", "", good);
  const Answer preflight = client.Read();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.Field("Access-Control-Allow-Origin"), "https://good.example");
  EXPECT_EQ(preflight.Field("Access-Control-Allow-Headers"), "authorization");
  EXPECT_EQ(preflight.Field("Access-Control-Allow-Methods"), "GET, POST, DELETE, OPTIONS");
  EXPECT_EQ(
      Get("/health", {{"Origin", "https://bad.example"}}).Field("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(Get("/nothing", good).Field("Access-Control-Allow-Origin"), "https://good.example");
}

TEST_F(HttpServerTest, KeepAliveAndPipelining) {
  Start();
  Client client(port_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/health").status, 200);
  const std::string body = R"({"prompt": "Hi"})";
  client.SendRequest("POST", "/v1/completions", body);
  client.SendRequest("GET", "/health", "");
  client.SendRequest("GET", "/nothing", "");
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 404);
  EXPECT_EQ(client.Get("/health", {{"Connection", "close"}}).status, 200);
  EXPECT_TRUE(client.AtEnd());
}

TEST_F(HttpServerTest, LimitsOfTheMessage) {
  ServerConfig config;
  config.max_body_bytes = 1000;
  config.max_header_bytes = 2000;
  config.body_timeout_us = 5'000'000;
  Start(config);
  ExpectError(Post("/v1/completions", std::string(1001, ' ')), 413, "invalid_request_error");
  ExpectError(Get("/health", {{"X-Long", std::string(4000, 'x')}}), 431, "invalid_request_error");
  Client chunked(port_);
  chunked.SendRaw(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) chunked.SendRaw("200\r\n" + std::string(512, ' ') + "\r\n");
  ExpectError(chunked.Read(), 413, "invalid_request_error");
  // An endless extension of a chunk, and endless trailers.
  for (const char* endless : {"1;", "0\r\n"}) {
    Client client(port_);
    client.SendRaw(
        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.SendRaw(endless + std::string(4000, 'a'));
    ExpectError(client.Read(), 431, "invalid_request_error");
    EXPECT_TRUE(client.AtEnd());
  }
}

TEST_F(HttpServerTest, RefusalsHaveTheRequestsIdAndOrigin) {
  ServerConfig config;
  config.max_body_bytes = 1000;
  config.body_timeout_us = 150'000;
  config.allowed_origins = {"https://good.example"};
  Start(config);
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: my-id\r\n"
      "Content-Type: application/json\r\n"
      "Origin: https://good.example\r\n";
  const std::pair<const char*, int> cases[] = {
      {"Content-Length: 1001\r\n\r\n", 413},
      {"Content-Length: 10\r\n\r\n", 408},  // the body does not come
      {"Transfer-Encoding: chunked\r\n\r\nx\r\n", 400},
  };
  for (const auto& [rest, status] : cases) {
    Client client(port_);
    client.SendRaw(head + rest);
    const Answer answer = client.Read();
    ExpectError(answer, status, "invalid_request_error");
    EXPECT_EQ(answer.Field("x-request-id"), "my-id");
    EXPECT_EQ(answer.Field("Access-Control-Allow-Origin"), "https://good.example");
  }
}

TEST_F(HttpServerTest, WhatIsNotHttpIsRefused) {
  Start();
  for (const char* bytes :
       {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02garbage\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"}) {
    Client client(port_);
    client.SendRaw(bytes);
    ExpectError(client.Read(), 400, "invalid_request_error");
    EXPECT_TRUE(client.AtEnd());
  }
  EXPECT_EQ(Get("/health").status, 200);
}

TEST_F(HttpServerTest, ChunkedBodyExpectContinueAndHttp10) {
  Start();
  Client chunked(port_);
  chunked.SendRaw(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "8\r\n{\"prompt\r\n8\r\n\": \"abc\"\r\n1\r\n}\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.Read().json()["count"], 3);
  Client expecting(port_);
  expecting.SendRaw(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: "
      "16\r\n\r\n");
  EXPECT_EQ(expecting.ReadSome(), "HTTP/1.1 100 Continue\r\n\r\n");
  expecting.SendRaw("{\"prompt\": \"abc\"");
  expecting.SendRaw("}");
  EXPECT_EQ(expecting.Read().status, 400);  // 16 bytes are not the whole object
  Client old(port_);
  old.SendRaw("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.Read().status, 200);
  EXPECT_TRUE(old.AtEnd());
  Client expecting_old(port_);
  expecting_old.SendRaw(
      "POST /tokenize HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 17\r\n\r\n");
  expecting_old.SendRaw(R"({"prompt": "abc"})");
  EXPECT_EQ(expecting_old.Read().json()["count"], 3);
  Client proxied(port_);
  proxied.SendRaw("GET http://t/health?x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(proxied.Read().status, 200);
  Client head(port_);
  head.SendRaw("HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answer = head.ReadSome();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpServerTest, SlowHeadsAndIdleConnectionsEnd) {
  ServerConfig config;
  config.header_timeout_us = 150'000;
  config.idle_timeout_us = 150'000;
  Start(config);
  Client silent(port_);
  EXPECT_TRUE(silent.AtEnd());
  Client idle(port_);
  EXPECT_EQ(idle.Get("/health").status, 200);
  EXPECT_TRUE(idle.AtEnd());
  Client trickle(port_);
  std::thread sender([&] {
    for (int i = 0; i < 20; ++i) {
      trickle.SendRaw("G");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const std::string answer = trickle.ReadSome();
  sender.join();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408") || answer.starts_with("HTTP/1.1 400")) << answer;
}

TEST_F(HttpServerTest, AddressInUseAndBadTlsFilesAreNamed) {
  Start();
  ServerConfig config;
  config.port = port_;
  Result<uint16_t> again = HttpServer(config).Start();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().param(), "port");
  config.port = 0;
  config.ssl_certfile = "/nonexistent.pem";
  EXPECT_EQ(HttpServer(config).Start().status().param(), "ssl-keyfile");
  config.ssl_keyfile = "/nonexistent.key";
  EXPECT_EQ(HttpServer(config).Start().status().param(), "ssl-certfile");
  config.ssl_certfile.clear();
  config.ssl_keyfile.clear();
  config.host = "no such host";
  EXPECT_EQ(HttpServer(config).Start().status().param(), "host");
}

// A tokenizer that waits in Encode until it is released.
class HeldTokenizer final : public ByteTokenizer {
 public:
  Status Encode(std::string_view text, bool add_special_tokens,
                std::vector<TokenId>* ids) const override {
    ++num_waiting;
    ++num_texts;
    may_.get_future().wait_for(std::chrono::seconds(10));
    --num_waiting;
    return ByteTokenizer::Encode(text, add_special_tokens, ids);
  }
  void Release() { may_.set_value(); }

  mutable std::atomic<int> num_waiting{0};
  mutable std::atomic<int> num_texts{0};

 private:
  mutable std::promise<void> may_;
};

TEST_F(HttpServerTest, ReadingALongBodyHoldsUpNobody) {
  HeldTokenizer held;
  ServerConfig config;
  config.num_io_threads = 1;
  Start(config, false);
  ModelEntry entry = Entry();
  entry.tokenizer = &held;
  ModelRegistry models;
  models.Add(std::move(entry));
  server_->SetModels(std::move(models));
  Client client(port_);
  client.SendRequest("POST", "/tokenize", R"({"prompt": ")" + std::string(5000, 'x') + "\"}");
  ASSERT_TRUE(Eventually([&] { return held.num_waiting == 1; }));
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(held.num_waiting, 1);
  held.Release();
  EXPECT_EQ(client.Read().json()["count"], 5000);
}

TEST_F(HttpServerTest, WhatNobodyWaitsForIsNotRead) {
  HeldTokenizer held;
  ServerConfig config;
  config.num_worker_threads = 1;
  Start(config, false);
  ModelEntry entry = Entry();
  entry.tokenizer = &held;
  ModelRegistry models;
  models.Add(std::move(entry));
  server_->SetModels(std::move(models));
  const std::string body = R"({"prompt": ")" + std::string(5000, 'x') + "\"}";
  Client client(port_);
  client.SendRequest("POST", "/tokenize", body);
  ASSERT_TRUE(Eventually([&] { return held.num_waiting == 1; }));
  {
    Client gone(port_);
    gone.SendRequest("POST", "/tokenize", body);
    ASSERT_TRUE(Eventually([&] { return server_->num_active_requests() == 2; }));
  }
  ASSERT_TRUE(Eventually([&] { return server_->num_active_requests() == 1; }));
  held.Release();
  EXPECT_EQ(client.Read().json()["count"], 5000);
  EXPECT_EQ(held.num_texts, 1);
}

TEST_F(HttpServerTest, ManyConnectionsAtOnce) {
  Start();
  std::vector<std::thread> threads;
  std::atomic<int> num_right{0};
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      Client client(port_);
      for (int i = 0; i < 10; ++i) {
        const bool stream = (t + i) % 2 == 0;
        const Answer answer = client.Post(
            "/v1/completions", std::string(R"({"prompt": "Hi", "max_tokens": 50, "stream": )") +
                                   (stream ? "true}" : "false}"));
        std::string text;
        if (stream) {
          for (const std::string& event : answer.Events()) {
            if (event != "[DONE]") text += (*ParseJson(event))["choices"][0]["text"];
          }
        } else {
          text = answer.json()["choices"][0]["text"];
        }
        if (text == "Hello, world") ++num_right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, 640);
}

}  // namespace
}  // namespace skein::testing
