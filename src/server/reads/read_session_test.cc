#include "server/reads/read_session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>
#include <mutex>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

// A responder that keeps its answer and runs tasks on its own thread, in order.
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
  void Post(std::function<void()> task) override { boost::asio::post(thread_, std::move(task)); }
  void PostWork(std::function<void()> task) override {
    ++num_work_;
    Post(std::move(task));
  }

  void Abort(AbortReason reason) {
    std::promise<void> done;
    Post([&] {
      abort_(reason);
      done.set_value();
    });
    done.get_future().wait();
  }
  // Breaks a cycle: a session owns its responder, and the responder owns the session's callback.
  void Drop() {
    thread_.join();
    abort_ = nullptr;
  }
  int num_work() const { return num_work_; }
  size_t num_sent() {
    std::lock_guard lock(mutex_);
    return sent_.size();
  }
  HttpResponse sent() {
    std::lock_guard lock(mutex_);
    return sent_.at(0);
  }

 private:
  std::mutex mutex_;
  std::vector<HttpResponse> sent_;
  std::function<void(AbortReason)> abort_;
  std::atomic<int> num_work_{0};
  boost::asio::thread_pool thread_{1};
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

  ~ReadSessionTest() override { responder_->Drop(); }

  // Starts one read of labels for each prompt length; all prompts share a head of 3 tokens.
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
  EXPECT_EQ(responder_->num_work(), 0);
}

TEST_F(ReadSessionTest, ALongAnswerIsMadeByAWorker) {
  engine_.set_reader([](const Request&) { return ReadValues{std::vector<float>(20000, 7), 0}; });
  Start({5});
  ASSERT_TRUE(Eventually([&] { return responder_->num_sent() == 1; }));
  EXPECT_EQ(responder_->sent().body, "[7.0,5,2]");
  EXPECT_EQ(responder_->num_work(), 1);
  responder_->Abort(AbortReason::kShutdown);  // no request is left to end
  EXPECT_EQ(responder_->num_sent(), 1u);
  EXPECT_EQ(engine_.num_cancelled(), 0);
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
  responder_->Abort(AbortReason::kPeerGone);
}

}  // namespace
}  // namespace skein::testing
