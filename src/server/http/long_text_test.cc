// Long texts beside short ones, and long texts whose client leaves.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/interrupt/work_pause.h"
#include "testing/decision_server.h"
#include "testing/word_tokenizer.h"

namespace skein::testing {
namespace {

// Encodes long texts in slices until `may_finish`. Counts the slices.
class SlowTokenizer final : public WordTokenizer {
 public:
  SlowTokenizer() : WordTokenizer(DecisionWords()) {}
  Status Encode(std::string_view text, bool special, std::vector<TokenId>* ids) const override {
    if (text.size() < SliceMeter::kSliceBytes) return WordTokenizer::Encode(text, special, ids);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!may_finish && std::chrono::steady_clock::now() < end) {
      if (!MayGoOn()) {
        ++num_stopped;
        return {StatusCode::kUnavailable, "stopped"};
      }
      ++num_slices;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(may_finish);
    ids->assign(text.begin(), text.end());
    return Status::Ok();
  }

  std::atomic<bool> may_finish{false};
  mutable std::atomic<int> num_slices{0}, num_stopped{0};
};

class LongTextTest : public ServerTest {
 protected:
  void StartSlow(int num_workers, bool embeds = false) {
    ServerConfig config;
    config.num_worker_threads = num_workers;
    Start(config, /*set_models=*/false);
    ModelEntry entry = Entry();
    entry.tokenizer = &slow_;
    entry.max_model_len = 1 << 30;
    entry.traits.embeds = embeds;
    entry.traits.embedding_size = 4;
    ModelRegistry registry;
    registry.Add(entry);
    server_->SetModels(registry);
  }

  SlowTokenizer slow_;
  const std::string long_text_ = std::string(300 << 10, 'a');
  const std::string medium_body_ = R"({"prompt": ")" + std::string(8 << 10, 'b') + R"("})";
};

TEST_F(LongTextTest, EndsWithItsClientOnEveryRoute) {
  const std::string text = "\"" + long_text_ + "\"";
  const struct {
    const char* path;
    std::string body;
    bool embeds = false;
  } requests[] = {
      {"/tokenize", R"({"prompt": )" + text + "}"},
      {"/v1/completions", R"({"prompt": )" + text + "}"},
      {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": )" + text + "}]}"},
      {"/v1/embeddings", R"({"input": )" + text + "}", true},
      {"/rerank", R"({"query": "a", "documents": [)" + text + "]}", true},
      {"/rerank", R"({"query": "a", "documents": [)" + text + "]}"},
      {"/score", R"({"text_1": "a", "text_2": )" + text + "}"},
      {"/v1/decisions", R"({"input": )" + text +
                            R"(, "questions": [{"type": "predicate", "instructions": "a?"}]})"}};
  int num_requests = 0;
  for (const auto& [path, body, embeds] : requests) {
    const int before = slow_.num_slices;
    StartSlow(1, embeds);
    Client client(port_);
    client.SendRequest("POST", path, body);
    ASSERT_TRUE(Eventually([&] { return slow_.num_slices > before + 2; })) << path;
    EXPECT_EQ(slow_.num_stopped, num_requests);
    client.Close();
    ++num_requests;
    EXPECT_TRUE(Eventually([&] { return slow_.num_stopped == num_requests; })) << path;
    EXPECT_TRUE(Eventually([&] { return server_->Drained(); })) << path;
  }
}

TEST_F(LongTextTest, ShortOnesOvertake) {
  for (const int num_workers : {1, 2}) {
    slow_.may_finish = false;
    StartSlow(num_workers);
    const std::string body = R"({"prompt": ")" + long_text_ + "\"}";
    std::vector<std::unique_ptr<Client>> clients;
    const int before = slow_.num_slices;
    for (int i = 0; i < 6; ++i) {
      clients.push_back(std::make_unique<Client>(port_));
      clients.back()->SendRequest("POST", "/tokenize", body);
    }
    ASSERT_TRUE(Eventually([&] { return slow_.num_slices > before; }));
    slow_.may_finish = false;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Post("/tokenize", medium_body_).status, 200);
    EXPECT_EQ(slow_.num_stopped, 0);
    slow_.may_finish = true;
    for (const auto& client : clients) {
      const Answer answer = client->Read();
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.json()["count"], long_text_.size());
    }
  }
}

TEST_F(LongTextTest, EndsWithTheServer) {
  StartSlow(1);
  Client client(port_);
  client.SendRequest("POST", "/tokenize", R"({"prompt": ")" + long_text_ + "\"}");
  ASSERT_TRUE(Eventually([&] { return slow_.num_slices > 0; }));
  server_->Abort();
  EXPECT_EQ(client.Read().status, 503);
  EXPECT_EQ(slow_.num_stopped, 1);
}

}  // namespace
}  // namespace skein::testing
