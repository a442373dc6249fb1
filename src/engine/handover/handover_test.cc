// A prefill and a decode instance, with executors that have no model. Their tokens reveal any wrong
// block.

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/handover/decode_listener.h"
#include "engine/handover/handover_engine.h"
#include "engine/handover/prefix_transfer.h"
#include "testing/engine_loop.h"

namespace skein {
namespace {

using testing::Answers;
using testing::Fixture;
using testing::MakeRequest;

constexpr char kLoopback[] = "127.0.0.1";

bool Within60s(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A decode instance that may end and start again on the same port.
class DecodeInstance {
 public:
  explicit DecodeInstance(const Hello& hello, uint16_t port = 0,
                          const FakeExecutor::Options& options = {})
      : fixture_(options), listener_(fixture_.engine.get(), fixture_.executor.get(), hello) {
    port_ = listener_.Start({kLoopback, port}).value();
  }
  ~DecodeInstance() {
    listener_.Stop();
    fixture_.engine->Shutdown();
  }
  uint16_t port() const { return port_; }
  EngineLoop& engine() { return *fixture_.engine; }

 private:
  Fixture fixture_;
  DecodeListener listener_;
  uint16_t port_ = 0;
};

class HandoverTest : public ::testing::Test {
 protected:
  HandoverTest() { hello_.block_bytes = prefill_.executor->port_bytes(); }
  ~HandoverTest() override {
    if (engine_) engine_->Stop();
    prefill_.engine->Shutdown();
  }

  void Begin(const FakeExecutor::Options& options = {}) {
    decode_.emplace(hello_, port_, options);
    port_ = decode_->port();
    if (!engine_) {
      engine_.emplace(prefill_.engine.get(), prefill_.executor.get(), &prefill_.clock,
                      HandoverConfig{.peer = {kLoopback, port_}, .hello = hello_});
    }
  }

  // Submits a request. Until the peer is connected, requests decode in this process.
  RequestId Submit(const Request& request) {
    RequestId id = 0;
    EXPECT_TRUE(engine_->Submit(request, prefill_.answers.Callback(), &id).ok());
    return id;
  }
  // Waits until requests are handed over.
  void WaitForPeer() {
    ASSERT_TRUE(Within60s([&] {
      const uint64_t before = engine_->Stats().requests_handed_over;
      num_submitted_ += 1;
      Submit(MakeRequest(3, 2));
      prefill_.answers.WaitFinished(num_submitted_);
      return engine_->Stats().requests_handed_over > before;
    }));
  }
  void ExpectAnswer(RequestId id, const Request& request) {
    for (int32_t i = 0; i < request.generate().num_samples; ++i) {
      const Answers::Sample answer = prefill_.answers.Of(id, i);
      EXPECT_EQ(answer.finish, FinishReason::kLength);
      EXPECT_EQ(answer.tokens, FakeExecutor::Expected(prefill_.options, request, i,
                                                      request.generate().max_tokens));
      EXPECT_GT(answer.times.first_token_us, 0);
      EXPECT_GE(answer.times.finished_us, answer.times.first_token_us);
    }
  }

  Fixture prefill_;
  Hello hello_{.model = "fake"};
  uint16_t port_ = 0;
  int num_submitted_ = 0;
  std::optional<DecodeInstance> decode_;
  std::optional<HandoverEngine> engine_;
};

TEST_F(HandoverTest, DecodesGoOnElsewhereWithTheSameTokens) {
  Begin();
  WaitForPeer();
  std::vector<std::pair<RequestId, Request>> asked;
  for (int32_t i = 0; i < 30; ++i) {
    Request request = MakeRequest(1 + 7 * i, 1 + i % 20, i);
    request.generate().num_samples = i % 5 == 0 ? 3 : 1;
    request.generate().sampling.seed = i;
    num_submitted_ += request.generate().num_samples;
    asked.emplace_back(Submit(request), request);
  }
  prefill_.answers.WaitFinished(num_submitted_);
  for (const auto& [id, request] : asked) ExpectAnswer(id, request);
  const EngineStats stats = engine_->Stats();
  EXPECT_GT(stats.requests_handed_over, 25u);
  EXPECT_EQ(stats.requests_taken_back, 0u);
  EXPECT_GT(stats.handover_blocks, 50u);
  // The gauge falls shortly after the last output.
  EXPECT_TRUE(Within60s([&] { return engine_->Stats().num_requests_running == 0; }));
  // The peer computes no block that was sent to it. Asked alone: blocks that nobody holds yet may
  // be evicted for others.
  const EngineStats before = decode_->engine().Stats();
  Submit(MakeRequest(200, 5, 99));
  prefill_.answers.WaitFinished(++num_submitted_);
  const EngineStats after = decode_->engine().Stats();
  EXPECT_EQ(after.prefix_cache_hits - before.prefix_cache_hits, 32u * 6);
  EXPECT_LT(after.prefix_cache_queries - before.prefix_cache_queries, 32u * 6 + 34);
}

TEST_F(HandoverTest, WithoutAPeerRequestsDecodeHere) {
  engine_.emplace(prefill_.engine.get(), prefill_.executor.get(), &prefill_.clock,
                  HandoverConfig{.peer = {kLoopback, 1}, .hello = hello_});
  const Request request = MakeRequest(50, 10);
  const RequestId id = Submit(request);
  prefill_.answers.WaitFinished(1);
  ExpectAnswer(id, request);
  EXPECT_EQ(engine_->Stats().requests_handed_over, 0u);
}

TEST_F(HandoverTest, APeerWithAnotherModelIsNotUsed) {
  Hello other = hello_;
  other.model = "another";
  const DecodeInstance instance(other);
  engine_.emplace(prefill_.engine.get(), prefill_.executor.get(), &prefill_.clock,
                  HandoverConfig{.peer = {kLoopback, instance.port()}, .hello = hello_});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Request request = MakeRequest(50, 10);
  const RequestId id = Submit(request);
  prefill_.answers.WaitFinished(1);
  ExpectAnswer(id, request);
  EXPECT_EQ(engine_->Stats().requests_handed_over, 0u);
}

TEST_F(HandoverTest, NothingIsLostWhenThePeerIsLost) {
  // Steps take a millisecond, so that the peer is lost in the middle of answers.
  Begin({.step_us = 1000});
  for (int round = 0; round < 3; ++round) {
    WaitForPeer();
    std::vector<std::pair<RequestId, Request>> asked;
    for (int32_t i = 0; i < 12; ++i) {
      Request request = MakeRequest(10 + 5 * i, 100, i);
      request.generate().num_samples = i % 4 == 0 ? 2 : 1;
      request.generate().sampling.seed = 100 * round + i;
      num_submitted_ += request.generate().num_samples;
      asked.emplace_back(Submit(request), request);
    }
    prefill_.answers.WaitTokens(asked[1].first, 5 + 10 * round);
    decode_.reset();
    prefill_.answers.WaitFinished(num_submitted_);
    for (const auto& [id, request] : asked) ExpectAnswer(id, request);
    EXPECT_GT(engine_->Stats().requests_taken_back, 0u);
    Begin({.step_us = 1000});
  }
  EXPECT_TRUE(Within60s([&] { return engine_->Stats().num_requests_running == 0; }));
}

TEST_F(HandoverTest, CancelledRequestsEndAtThePeer) {
  Begin({.step_us = 1000});
  WaitForPeer();
  Request request = MakeRequest(40, 200);
  request.generate().num_samples = 3;
  const RequestId id = Submit(request);
  prefill_.answers.WaitTokens(id, 3);
  engine_->CancelSample(id, 1);
  ASSERT_TRUE(Within60s([&] { return prefill_.answers.Of(id, 1).finish.has_value(); }));
  EXPECT_EQ(prefill_.answers.Of(id, 1).finish, FinishReason::kCancelled);
  EXPECT_EQ(prefill_.answers.Of(id, 0).finish, std::nullopt);
  engine_->Cancel(id);
  prefill_.answers.WaitFinished(num_submitted_ + 3);
  EXPECT_EQ(prefill_.answers.Of(id, 2).finish, FinishReason::kCancelled);
  EXPECT_TRUE(Within60s([&] { return decode_->engine().Stats().num_requests_running == 0; }));
}

TEST_F(HandoverTest, RequestsOfALostPrefillInstanceAreCancelled) {
  Begin({.step_us = 1000});
  WaitForPeer();
  const RequestId id = Submit(MakeRequest(40, 200));
  prefill_.answers.WaitTokens(id, 3);
  EXPECT_TRUE(Within60s([&] { return decode_->engine().Stats().num_requests_running == 1; }));
  engine_->Stop();
  prefill_.answers.WaitFinished(num_submitted_ + 1);
  EXPECT_EQ(prefill_.answers.Of(id).finish, FinishReason::kError);
  EXPECT_EQ(prefill_.answers.Of(id).status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Within60s([&] { return decode_->engine().Stats().num_requests_running == 0; }));
}

TEST_F(HandoverTest, RequestsThatNeedTheirPromptStayHere) {
  Begin();
  WaitForPeer();
  const uint64_t before = engine_->Stats().requests_handed_over;
  Request logprobs = MakeRequest(40, 5);
  logprobs.prompt_logprobs = PromptLogprobsSpec{};
  Request choices = MakeRequest(40, 5);
  choices.generate().choices = {{1, 2}, {3}};
  for (const Request& request : {MakeRequest(40, 1), MakeRequest(255, 9), logprobs, choices}) {
    Submit(request);
  }
  prefill_.answers.WaitFinished(num_submitted_ + 4);
  EXPECT_EQ(engine_->Stats().requests_handed_over, before);
}

// Some bytes are no Hello, no message, or a message of the other side. They close their connection
// and harm no other.
TEST_F(HandoverTest, HostileBytesCloseTheirConnection) {
  Begin({.step_us = 1000});
  const auto closes = [&](const std::vector<WireBytes>& frames) {
    boost::asio::io_context io;
    boost::asio::ip::tcp::socket socket(io);
    boost::system::error_code error;
    socket.connect({boost::asio::ip::make_address(kLoopback), port_}, error);
    EXPECT_FALSE(error) << error.message();
    for (const WireBytes& frame : frames) {
      boost::asio::write(socket, boost::asio::buffer(frame), error);
    }
    std::vector<std::byte> rest(1 << 16);
    while (!error) socket.read_some(boost::asio::buffer(rest), error);
    return error;
  };
  WireBytes noise(100, std::byte{'x'});
  EXPECT_TRUE(closes({noise}));
  EXPECT_TRUE(closes({FrameOf(Alive{})}));
  EXPECT_TRUE(closes({FrameOf(Hello{.block_bytes = 1, .model = "fake"})}));
  WireBytes cut = FrameOf(StartCall{.request = MakeRequest(5, 5)});
  cut[kFrameHeadBytes] = std::byte{99};
  EXPECT_TRUE(closes({FrameOf(hello_), cut}));
  EXPECT_TRUE(closes({FrameOf(hello_), FrameOf(CallOutput{.output = {.sample = 0}})}));
  // The call's name is that of a running request.
  const WireBytes start = FrameOf(StartCall{.call = 1, .request = MakeRequest(5, 200)});
  EXPECT_TRUE(closes({FrameOf(hello_), start, start}));
  WaitForPeer();
}

// Blocks that do not continue a cached prefix are not imported; blocks that do may evict older
// blocks.
TEST(PrefixTransfer, ImportsWhatContinuesAPrefix) {
  FakeExecutor from({.num_kv_blocks = 8, .vocab_size = 100});
  FakeExecutor to({.num_kv_blocks = 4, .vocab_size = 100});
  BlockManager cache(4, /*prefix_caching=*/true);
  const std::vector<std::byte> data(3 * to.port_bytes());
  const auto run = [&](TokenId first_token, int32_t first_block, int32_t end) {
    BlockRun blocks{.first_block = first_block,
                    .data = std::span(data).first((end - first_block) * to.port_bytes())};
    blocks.tokens.assign(size_t{kBlockTokens} * end, 7);
    blocks.tokens[0] = first_token;
    return blocks;
  };
  EXPECT_EQ(ImportPrefix(&cache, &to, run(1, 1, 2)), 0);  // a gap before block 1
  EXPECT_EQ(cache.num_cached(), 0);
  EXPECT_EQ(ImportPrefix(&cache, &to, run(1, 0, 2)), 2);
  EXPECT_EQ(ImportPrefix(&cache, &to, run(1, 2, 3)), 3);
  EXPECT_EQ(ImportPrefix(&cache, &to, run(1, 0, 3)), 3);  // the blocks are there already
  EXPECT_EQ(cache.num_cached(), 3);
  EXPECT_EQ(ImportPrefix(&cache, &to, run(2, 0, 3)), 3);
  EXPECT_EQ(cache.num_cached(), 4);
  EXPECT_EQ(cache.num_referenced(), 0);
  cache.CheckIntegrity();
  // Referenced blocks are not evicted.
  std::vector<BlockId> taken;
  while (cache.num_available() > 1) taken.push_back(cache.Allocate());
  EXPECT_LE(ImportPrefix(&cache, &to, run(3, 0, 3)), 1);
  cache.CheckIntegrity();
  cache.Release(taken);
}

TEST(HostPort, IsReadOrRefused) {
  const auto read = [](const std::string& text) {
    const Result<HostPort> address = ParseHostPort("--decode-peer", text);
    return address.ok() ? address.value().host + " " + std::to_string(address.value().port)
                        : address.status().message();
  };
  EXPECT_EQ(read("localhost:80"), "localhost 80");
  EXPECT_EQ(read("[::1]:0"), "::1 0");
  for (const char* text : {"", "host", ":80", "host:", "host:x", "host:65536", "::1:80", "[]:1"}) {
    EXPECT_EQ(read(text), "--decode-peer is '" + std::string(text) +
                              "', must be HOST:PORT, the port in [0, 65535]");
  }
}

}  // namespace
}  // namespace skein
