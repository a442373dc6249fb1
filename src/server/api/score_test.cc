#include <gtest/gtest.h>

#include <cmath>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

class ScoreTest : public DecisionServerTest {
 protected:
  void ExpectRefused(const Answer& answer, const std::string& param, const std::string& part) {
    EXPECT_EQ(answer.status, 400) << answer.body;
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["param"], param) << answer.body;
    EXPECT_NE(error["message"].get<std::string>().find(part), std::string::npos) << answer.body;
  }
};

TEST_F(ScoreTest, PairsOneToManyAndOneToOne) {
  StartModel([](ModelEntry* entry) { entry->traits.qwen3_reranker = true; });
  Answer answer = Post("/v1/score", R"({"text_1": "q", "text_2": ["a", "b"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  Json json = answer.json();
  EXPECT_EQ(json["object"], "list");
  ASSERT_EQ(json["data"].size(), 2u);
  EXPECT_EQ(json["data"][1]["index"], 1);
  EXPECT_EQ(json["data"][1]["object"], "score");
  // The fake's logits are 0 for no and -1 for yes.
  EXPECT_DOUBLE_EQ(json["data"][1]["score"].get<double>(), std::exp(-1) / (1 + std::exp(-1)));
  EXPECT_NE(PromptText(1).find("<Query>: q\n<Document>: b<"), std::string::npos);

  answer = Post("/score", R"({"queries": ["q", "r"], "documents": ["a", {"text": "b"}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(PromptText(0).find("<Query>: q\n<Document>: a<"), std::string::npos);
  EXPECT_NE(PromptText(1).find("<Query>: r\n<Document>: b<"), std::string::npos);

  ExpectRefused(Post("/score", R"({"queries": ["q", "r"], "documents": ["a", "b", "c"]})"),
                "queries", "must have one text, or as many as documents (3), got 2");
  ExpectRefused(Post("/score", R"({"queries": "q"})"), "documents", "given");
  ExpectRefused(Post("/score", "{}"), "queries", "must be given");
}

TEST_F(ScoreTest, ItemsAgainstLabelTokens) {
  StartModel();
  const auto post = [&](const std::string& path, const std::string& more) {
    return Post(
        path, R"({"query": "q ", "items": ["a", "bb"], "label_token_ids": [65, 66])" + more + "}");
  };
  // The fake's logits are 0 and -1, the log-sum-exp 2.
  Json json = post("/v1/score", "").json();
  EXPECT_EQ(json["object"], "scoring");
  ASSERT_EQ(json["scores"].size(), 2u);
  EXPECT_DOUBLE_EQ(json["scores"][1][1].get<double>(), std::exp(-3));
  EXPECT_EQ(PromptText(1), "q bb");
  EXPECT_EQ(Labels(0), (std::vector<TokenId>{65, 66}));
  EXPECT_EQ(engine_.last_group()[0].group.parent_prefix_len, 2);
  EXPECT_GT(json["usage"]["prompt_tokens"].get<int>(), 0);

  json = post("/v1/score", R"(, "apply_softmax": true, "item_first": true)").json();
  EXPECT_DOUBLE_EQ(json["scores"][0][0].get<double>(), 1 / (1 + std::exp(-1)));
  EXPECT_EQ(PromptText(1), "bbq ");

  json = post("/generative_scoring", "").json();
  EXPECT_EQ(json["data"][1]["object"], "score");
  EXPECT_DOUBLE_EQ(json["data"][1]["score"].get<double>(), 1 / (1 + std::exp(-1)));
  json = post("/generative_scoring", R"(, "apply_softmax": false)").json();
  EXPECT_DOUBLE_EQ(json["data"][0]["score"].get<double>(), std::exp(-2));
}

TEST_F(ScoreTest, ItemsOfTokenIds) {
  StartModel();
  ASSERT_EQ(Post("/v1/score", R"({"query": [97, 98], "items": [[99], [100, 101]],
                                  "label_token_ids": [1]})")
                .status,
            200);
  EXPECT_EQ(PromptText(1), "abde");
  ExpectRefused(Post("/v1/score", R"({"query": [97], "items": [[999]], "label_token_ids": [1]})"),
                "items[0]", "token ids in [0, 256]");
  ExpectRefused(Post("/v1/score", R"({"query": [97], "items": ["a"], "label_token_ids": [1]})"),
                "items[0]", "as query is");
}

TEST_F(ScoreTest, WrongItems) {
  StartModel();
  const auto post = [&](const std::string& fields) {
    return Post("/generative_scoring", "{" + fields + "}");
  };
  const std::string good = R"("query": "q", "items": ["a"])";
  ExpectRefused(post(good), "label_token_ids", "1 to 1024 token ids");
  ExpectRefused(post(good + R"(, "label_token_ids": [])"), "label_token_ids", "1 to 1024");
  ExpectRefused(post(good + R"(, "label_token_ids": [257])"), "label_token_ids", "[0, 256]");
  ExpectRefused(post(good + R"(, "label_token_ids": [7, 8, 7])"), "label_token_ids", "7 twice");
  ExpectRefused(post(R"("items": ["a"], "label_token_ids": [1])"), "query", "a string");
  ExpectRefused(post(R"("query": "q", "label_token_ids": [1])"), "items", "at least one");
  ExpectRefused(post(R"("query": "q", "items": [[1]], "label_token_ids": [1])"), "items[0]",
                "must be a string");
  engine_.set_queue_limit(1);
  ExpectRefused(post(R"("query": "q", "items": ["a", "b"], "label_token_ids": [1])"), "items",
                "at most 1 reads (--max-queued-requests), got 2");
}

TEST_F(ScoreTest, ModelCardsSayWhatComesOut) {
  StartModel();
  EXPECT_EQ(Get("/v1/models").json()["data"][0]["architecture"]["output_modalities"].dump(),
            R"(["text","decisions"])");
  StartModel([](ModelEntry* entry) {
    entry->traits.generates = false;
    entry->traits.embeds = true;
  });
  EXPECT_EQ(Get("/v1/models/fake").json()["architecture"]["output_modalities"].dump(),
            R"(["embeddings"])");
}

}  // namespace
}  // namespace skein::testing
