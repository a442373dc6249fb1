#include "server/read_session.h"

#include <gtest/gtest.h>

#include <mutex>

#include "server/testing_server.h"

namespace skein::testing {
namespace {

// Keeps what is sent; runs tasks at once, one at a time.
class KeptAnswer final : public Responder {
 public:
  void Send(HttpResponse response) override {
    std::lock_guard lock(mutex_);
    sent_.push_back(std::move(response));
  }
  void BeginStream(HttpResponse) override {}
  void Write(std::string) override {}
  void End() override {}
  void OnAbort(std::function<void(AbortReason)> callback) override {
    std::lock_guard lock(mutex_);
    abort_ = std::move(callback);
  }
  void Post(std::function<void()> task) override {
    std::lock_guard lock(strand_);
    task();
  }

  void Abort(AbortReason reason) {
    Post([this, reason] { abort_(reason); });
  }
  size_t num_sent() {
    std::lock_guard lock(mutex_);
    return sent_.size();
  }
  HttpResponse sent() {
    std::lock_guard lock(mutex_);
    return sent_.at(0);
  }

 private:
  std::recursive_mutex strand_;
  std::mutex mutex_;
  std::vector<HttpResponse> sent_;
  std::function<void(AbortReason)> abort_;
};

class ReadSessionTest : public ::testing::Test {
 protected:
  ReadSessionTest() : responder_(std::make_shared<KeptAnswer>()) {
    ModelEntry entry;
    entry.names = {"fake"};
    entry.engine = &engine_;
    entry.tokenizer = &tokenizer_;
    models_.Add(std::move(entry));
    metrics_.SetModels(models_);
  }

  // One read of labels for each prompt length; all share a head of 3 tokens.
  void Start(const std::vector<size_t>& lengths) {
    ReadSession::Spec spec;
    spec.model = &models_.entries().front();
    spec.metrics = &metrics_;
    spec.responder = responder_;
    for (size_t length : lengths) {
      Request request;
      request.prompt.assign(length, 65);
      request.output = LabelSpec{{static_cast<TokenId>(length), 66}, false};
      request.group.parent_prefix_len = 3;
      spec.requests.push_back(std::move(request));
    }
    spec.answer = [](const ReadResults& results) -> Result<Json> {
      Json json = Json::array();
      for (const ReadValues& read : results.reads) json.push_back(read.values[0]);
      json.push_back(results.usage.input_tokens);
      json.push_back(results.usage.cached_tokens);
      return json;
    };
    std::make_shared<ReadSession>(std::move(spec))->Start();
  }

  ByteTokenizer tokenizer_;
  ModelRegistry models_;
  Metrics metrics_;
  FakeEngine engine_;
  std::shared_ptr<KeptAnswer> responder_;
};

TEST_F(ReadSessionTest, AnswersInOrderAndCountsTheHeadOnce) {
  engine_.set_reader([](const Request& request) {
    return ReadValues{{float(std::get_if<LabelSpec>(&request.output)->tokens[0]), 0}, 0};
  });
  Start({5, 9, 4});
  ASSERT_TRUE(Eventually([&] { return responder_->num_sent() == 1; }));
  // 3 + 2 + 6 + 1 tokens; the fake says that 2 of each prompt were cached.
  EXPECT_EQ(responder_->sent().body, "[5.0,9.0,4.0,12,2]");
  EXPECT_EQ(engine_.last_group().size(), 3u);
}

TEST_F(ReadSessionTest, AbortCancelsAll) {
  engine_.set_paused(true);
  Start({5, 9, 4});
  EXPECT_EQ(engine_.num_running(), 3);
  responder_->Abort(AbortReason::kPeerGone);
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
  EXPECT_EQ(engine_.num_cancelled(), 3);
  EXPECT_EQ(responder_->num_sent(), 0u);
}

TEST_F(ReadSessionTest, ShutdownIsAnswered) {
  engine_.set_paused(true);
  Start({5, 9});
  responder_->Abort(AbortReason::kShutdown);
  ASSERT_EQ(responder_->num_sent(), 1u);
  EXPECT_EQ(responder_->sent().status, 503);
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
}

TEST_F(ReadSessionTest, RefusesMoreThanTheQueueTakes) {
  engine_.set_queue_limit(2);
  Start({5, 9, 4});
  ASSERT_EQ(responder_->num_sent(), 1u);
  EXPECT_EQ(responder_->sent().status, 400);
  engine_.set_queue_limit(3);
  engine_.set_paused(true);
  Start({5, 9});
  Start({5, 9});
  EXPECT_EQ(responder_->num_sent(), 2u);  // 429: the queue is full
  EXPECT_EQ(engine_.num_running(), 2);
}

}  // namespace
}  // namespace skein::testing
