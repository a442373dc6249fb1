#include "bench/serving/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio.hpp>
#include <chrono>
#include <mutex>
#include <thread>

#include "server/json/json.h"

namespace skein {
namespace {

using boost::asio::ip::tcp;
using ::testing::HasSubstr;
// A server on loopback with a thread per connection. `answer` writes the response to a request.
class FakeServer {
 public:
  struct Peer {
    tcp::socket* socket;
    std::string head, body;
    bool close = false;  // close the connection after this answer

    void Send(const std::string& text) {
      boost::system::error_code ignored;
      boost::asio::write(*socket, boost::asio::buffer(text), ignored);
    }
    void SendStreamHead() {
      Send(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
          "Transfer-Encoding: chunked\r\n\r\n");
    }
    void SendChunk(const std::string& text) {
      char size[20];
      std::snprintf(size, sizeof size, "%zx\r\n", text.size());
      Send(size + text + "\r\n");
    }
    void SendText(const std::string& text) {
      SendChunk("data: " + Json{{"choices", {{{"index", 0}, {"text", text}}}}}.dump() + "\n\n");
    }
    void SendEnd(int prompt_tokens, int output_tokens) {
      SendChunk("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n");
      SendChunk(
          "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(prompt_tokens) +
          ",\"completion_tokens\":" + std::to_string(output_tokens) +
          ",\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n");
      Send("0\r\n\r\n");
    }
  };
  using AnswerFn = std::function<void(Peer&)>;

  explicit FakeServer(AnswerFn answer)
      : answer_(std::move(answer)),
        acceptor_(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
    accepting_ = std::thread([this] { Accept(); });
  }

  ~FakeServer() {
    stop_ = true;
    boost::system::error_code ignored;
    tcp::socket wake(io_);  // ends the accept that blocks
    wake.connect(acceptor_.local_endpoint(), ignored);
    accepting_.join();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (auto& socket : sockets_) socket->shutdown(tcp::socket::shutdown_both, ignored);
    }
    for (std::thread& thread : threads_) thread.join();
  }

  LoadOptions Options() {
    LoadOptions options;
    options.url =
        ParseServerUrl("http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()))
            .value();
    options.format.model = "m";
    options.request_timeout_us = 5'000'000;
    return options;
  }

  int num_connections() const { return num_connections_; }
  int max_running() const { return max_running_; }
  std::vector<Json> bodies() {
    std::lock_guard<std::mutex> lock(mutex_);
    return bodies_;
  }

 private:
  void Accept() {
    while (true) {
      auto socket = std::make_shared<tcp::socket>(io_);
      boost::system::error_code error;
      acceptor_.accept(*socket, error);
      if (stop_ || error) return;
      ++num_connections_;
      std::lock_guard<std::mutex> lock(mutex_);
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { Serve(socket.get()); });
    }
  }

  void Serve(tcp::socket* socket) {
    std::string buffer;
    bool close = false;
    while (!close) {
      boost::system::error_code error;
      const size_t head_size =
          boost::asio::read_until(*socket, boost::asio::dynamic_buffer(buffer), "\r\n\r\n", error);
      if (error) break;
      Peer peer{socket, buffer.substr(0, head_size), ""};
      const size_t at = peer.head.find("Content-Length: ");
      const size_t length = at == std::string::npos ? 0 : std::stoul(peer.head.substr(at + 16));
      buffer.erase(0, head_size);
      if (buffer.size() < length) {
        boost::asio::read(*socket, boost::asio::dynamic_buffer(buffer),
                          boost::asio::transfer_exactly(length - buffer.size()), error);
      }
      peer.body = buffer.substr(0, length);
      buffer.erase(0, length);
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (length > 0) bodies_.push_back(Json::parse(peer.body));
        max_running_ = std::max<int>(max_running_, ++num_running_);
      }
      answer_(peer);
      std::lock_guard<std::mutex> lock(mutex_);
      --num_running_;
      close = peer.close;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    boost::system::error_code ignored;
    socket->shutdown(tcp::socket::shutdown_both, ignored);
  }

  AnswerFn answer_;
  boost::asio::io_context io_;
  tcp::acceptor acceptor_;
  std::thread accepting_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<tcp::socket>> sockets_;
  std::vector<std::thread> threads_;
  std::vector<Json> bodies_;
  std::atomic<bool> stop_{false};
  std::atomic<int> num_connections_{0};
  std::atomic<int> max_running_{0};
  int num_running_ = 0;
};

void SleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

std::vector<WorkloadRequest> Requests(int count, TimeUs interval_us) {
  std::vector<WorkloadRequest> requests(static_cast<size_t>(count));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].segments = {{"s/" + std::to_string(i), 4}};
    requests[i].arrival_us = interval_us * static_cast<TimeUs>(i);
    requests[i].max_tokens = 3;
  }
  return requests;
}

void AnswerThreeTokens(FakeServer::Peer& peer) {
  peer.SendStreamHead();
  for (const char* text : {"a", "b", "c"}) peer.SendText(text);
  peer.SendEnd(4, 3);
}

TEST(BenchClientTest, MeasuresAStream) {
  FakeServer server([](FakeServer::Peer& peer) {
    peer.SendStreamHead();
    SleepMs(60);
    peer.SendText("a");
    SleepMs(30);
    peer.SendText("b");
    SleepMs(30);
    peer.SendText("c");
    peer.SendEnd(4, 3);
  });
  const auto outcome = RunLoad(Requests(1, 0), server.Options());
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome.value().records.size(), 1u);
  const LoadRecord& record = outcome.value().records[0];
  EXPECT_TRUE(record.ok) << record.error;
  EXPECT_EQ(record.prompt_tokens, 4);
  EXPECT_EQ(record.output_tokens, 3);
  EXPECT_EQ(record.cached_tokens, 2);
  EXPECT_GE(record.ttft_us, 60'000);
  ASSERT_EQ(record.itl_us.size(), 2u);
  // Sleeps between sends have a minimal length, but pieces may arrive closer together.
  EXPECT_GE(record.itl_us[0] + record.itl_us[1], 40'000);
  EXPECT_GE(record.e2el_us, 120'000);
  EXPECT_GE(outcome.value().duration_us, record.e2el_us);
}

TEST(BenchClientTest, SendsWhatTheWorkloadSays) {
  FakeServer server(AnswerThreeTokens);
  LoadOptions options = server.Options();
  options.concurrency = 1;
  options.format.ignore_eos = true;
  options.format.temperature = 0.5;
  options.format.seed = 40;
  options.api_key = "secret";
  auto requests = Requests(2, 0);
  requests[1].slo_ttft_us = 25'500;
  requests[1].slo_tpot_us = 4'000;
  requests[1].priority = -2;
  ASSERT_TRUE(RunLoad(requests, options).ok());
  const std::vector<Json> bodies = server.bodies();
  ASSERT_EQ(bodies.size(), 2u);
  std::vector<TokenId> ids;
  ExpandSegment("s/0", 4, {}, &ids);
  EXPECT_EQ(bodies[0]["prompt"], Json(ids));
  EXPECT_EQ(bodies[0]["model"], "m");
  EXPECT_EQ(bodies[0]["max_tokens"], 3);
  EXPECT_EQ(bodies[0]["stream"], true);
  EXPECT_EQ(bodies[0]["stream_options"]["include_usage"], true);
  EXPECT_EQ(bodies[0]["ignore_eos"], true);
  EXPECT_EQ(bodies[0]["temperature"], 0.5);
  EXPECT_EQ(bodies[0]["seed"], 40);
  EXPECT_FALSE(bodies[0].contains("slo_ttft_ms"));
  EXPECT_EQ(bodies[1]["seed"], 41);
  EXPECT_EQ(bodies[1]["slo_ttft_ms"], 25.5);
  EXPECT_EQ(bodies[1]["slo_tpot_ms"], 4.0);
  EXPECT_EQ(bodies[1]["priority"], -2);
}

TEST(BenchClientTest, ClosedLoopKeepsItsConcurrencyAndItsConnections) {
  FakeServer server([](FakeServer::Peer& peer) {
    SleepMs(3);
    AnswerThreeTokens(peer);
  });
  LoadOptions options = server.Options();
  options.concurrency = 4;
  const auto outcome = RunLoad(Requests(40, 1'000'000), options);  // arrival times are ignored
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().records.size(), 40u);
  for (const auto& record : outcome.value().records) EXPECT_TRUE(record.ok) << record.error;
  EXPECT_EQ(server.max_running(), 4);
  EXPECT_EQ(server.num_connections(), 4);
}

TEST(BenchClientTest, OpenLoopFollowsTheArrivalTimes) {
  FakeServer server(AnswerThreeTokens);
  LoadOptions options = server.Options();
  options.speed = 10;
  const auto outcome =
      RunLoad(Requests(5, 500'000), options);  // the last request is sent at 2 s / 10
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().records.size(), 5u);
  EXPECT_GE(outcome.value().duration_us, 200'000);
  EXPECT_LT(outcome.value().duration_us, 2'000'000);
}

TEST(BenchClientTest, WaitingForAConnectionCountsAsLatency) {
  FakeServer server([](FakeServer::Peer& peer) {
    SleepMs(40);
    AnswerThreeTokens(peer);
  });
  LoadOptions options = server.Options();
  options.max_connections = 1;
  const auto outcome = RunLoad(Requests(3, 0), options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(server.num_connections(), 1);
  EXPECT_GE(outcome.value().records[2].ttft_us, 120'000);
}

TEST(BenchClientTest, ServerThatClosesEachConnection) {
  // The answer promises to keep the connection, so the client notices the close only when it uses
  // the connection again.
  FakeServer server([](FakeServer::Peer& peer) {
    AnswerThreeTokens(peer);
    peer.close = true;
  });
  LoadOptions options = server.Options();
  options.concurrency = 1;
  const auto outcome = RunLoad(Requests(5, 0), options);
  ASSERT_TRUE(outcome.ok());
  for (const auto& record : outcome.value().records) EXPECT_TRUE(record.ok) << record.error;
  EXPECT_EQ(server.num_connections(), 5);
}

TEST(BenchClientTest, FailuresAreOfOneRequest) {
  std::atomic<int> count{0};
  FakeServer server([&](FakeServer::Peer& peer) {
    const std::string refusal = R"({"error":{"message":"queue is full"}})";
    switch (count++) {
      case 0:
        peer.Send("HTTP/1.1 429 Too Many Requests\r\nContent-Length: " +
                  std::to_string(refusal.size()) + "\r\n\r\n" + refusal);
        break;
      case 1:
        peer.SendStreamHead();
        peer.SendText("a");
        peer.SendChunk("data: {\"error\":{\"message\":\"out of luck\"}}\n\n");
        peer.Send("0\r\n\r\n");
        break;
      case 2:
        peer.SendStreamHead();
        peer.SendText("a");
        peer.Send("0\r\n\r\n");
        break;
      case 3:
        peer.SendStreamHead();
        peer.SendText("a");
        peer.close = true;
        break;
      case 4:
        peer.SendStreamHead();
        peer.SendText("a");
        SleepMs(400);
        peer.close = true;
        break;
      default:
        AnswerThreeTokens(peer);
    }
  });
  LoadOptions options = server.Options();
  options.concurrency = 1;
  options.request_timeout_us = 200'000;
  const auto outcome = RunLoad(Requests(6, 0), options);
  ASSERT_TRUE(outcome.ok());
  const auto& records = outcome.value().records;
  ASSERT_EQ(records.size(), 6u);
  const char* errors[] = {"HTTP 429: queue is full", "out of luck", "stream ended", "receive",
                          "timed out"};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_FALSE(records[i].ok) << i;
    EXPECT_THAT(records[i].error, HasSubstr(errors[i])) << i;
  }
  EXPECT_TRUE(records[5].ok) << records[5].error;
}

TEST(BenchClientTest, TimeLimitEndsTheLoad) {
  FakeServer server([](FakeServer::Peer& peer) {
    peer.SendStreamHead();
    SleepMs(300);
    peer.close = true;
  });
  for (const int32_t concurrency : {0, 2}) {
    LoadOptions options = server.Options();
    options.concurrency = concurrency;
    options.time_limit_us = 150'000;
    const auto outcome = RunLoad(Requests(10, 100'000), options);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.value().records.size(), 2u);
    EXPECT_EQ(outcome.value().num_not_sent, 8);
    EXPECT_LT(outcome.value().duration_us, 1'000'000);
    for (const auto& record : outcome.value().records) EXPECT_FALSE(record.ok);
  }
}

TEST(BenchClientTest, NobodyListens) {
  LoadOptions options;
  {
    FakeServer server(AnswerThreeTokens);
    options = server.Options();
  }
  options.concurrency = 2;
  const auto outcome = RunLoad(Requests(4, 0), options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().records.size(), 4u);
  for (const auto& record : outcome.value().records) {
    EXPECT_THAT(record.error, HasSubstr("connect"));
  }
  EXPECT_EQ(FetchModelName(options).status().code(), StatusCode::kUnavailable);
}

TEST(BenchClientTest, FindsTheModel) {
  std::string head;
  FakeServer server([&](FakeServer::Peer& peer) {
    head = peer.head;
    const std::string body = R"({"object":"list","data":[{"id":"tiny"},{"id":"other"}]})";
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  });
  LoadOptions options = server.Options();
  options.url.path = "/proxy";
  options.api_key = "secret";
  const auto name = FetchModelName(options);
  ASSERT_TRUE(name.ok()) << name.status().message();
  EXPECT_EQ(name.value(), "tiny");
  EXPECT_THAT(head, HasSubstr("GET /proxy/v1/models"));
  EXPECT_THAT(head, HasSubstr("Bearer secret"));
}

TEST(BenchClientTest, ChatRefusesTokenIds) {
  LoadOptions options;
  options.url = {"127.0.0.1", "1", ""};
  options.format.endpoint = BenchEndpoint::kChat;
  std::vector<WorkloadRequest> requests(1);
  requests[0].prompt_token_ids = {1, 2};
  const auto outcome = RunLoad(requests, options);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().param(), "endpoint");
}

TEST(ParseServerUrlTest, AcceptsAndRefuses) {
  const auto url = ParseServerUrl("http://127.0.0.1:8000/v1/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url.value().host, "127.0.0.1");
  EXPECT_EQ(url.value().port, "8000");
  EXPECT_EQ(url.value().path, "");
  EXPECT_EQ(ParseServerUrl("http://[::1]:9").value().host, "::1");
  EXPECT_EQ(ParseServerUrl("http://h").value().port, "80");
  EXPECT_EQ(ParseServerUrl("http://h/a/v1").value().path, "/a");
  for (const char* bad :
       {"", "h:1", "https://h", "http://", "http://:80", "http://h:0",
        "http://h:", "http://h:99999", "http://h:1x", "http://[::1", "http://h/a b"}) {
    EXPECT_FALSE(ParseServerUrl(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace skein
