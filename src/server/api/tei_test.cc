#include <gtest/gtest.h>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

class TeiTest : public ServerTest {
 protected:
  TeiTest() {
    traits_.embeds = traits_.classifies = traits_.encodes_pairs = true;
    traits_.embedding_size = 2;
    traits_.any_dimensions = true;
    traits_.prompts = {{"query", "4"}};
    traits_.class_labels = {"no", "yes", "perhaps"};
    // The vector of a text is made of the digits at its first and its last token.
    engine_.set_reader([](const Request& request) {
      const auto digit = [](TokenId id) { return static_cast<float>(id - '0'); };
      if (std::holds_alternative<ClassifySpec>(request.output)) {
        return ReadValues{{0, digit(request.prompt.front()), digit(request.prompt.back())}, 0};
      }
      return ReadValues{{digit(request.prompt.front()), digit(request.prompt.back())}, 0};
    });
  }

  std::string Ask(const std::string& path, const std::string& body) {
    const Answer answer = Post(path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }
};

TEST_F(TeiTest, Embed) {
  Start();
  EXPECT_EQ(Ask("/embed", R"({"inputs": "34"})"), "[[0.6,0.8]]");
  EXPECT_EQ(Ask("/embed", R"({"inputs": ["34", "01"]})"), "[[0.6,0.8],[0,1]]");
  EXPECT_EQ(Ask("/embed", R"({"inputs": [51, 52]})"), "[[0.6,0.8]]");
  EXPECT_EQ(Ask("/embed", R"({"inputs": "34", "normalize": false})"), "[[3,4]]");
  EXPECT_EQ(Ask("/embed", R"({"inputs": "34", "dimensions": 1})"), "[[1]]");
  EXPECT_EQ(Ask("/embed", R"({"inputs": "3", "prompt_name": "query", "normalize": false})"),
            "[[4,3]]");
  const std::string longer = "3" + std::string(4096, '4');
  EXPECT_EQ(Ask("/embed", "{\"inputs\": \"" + longer + "5\", \"truncate\": true}"), "[[0.6,0.8]]");
  EXPECT_EQ(Ask("/embed", "{\"inputs\": \"" + longer +
                              "3\", \"truncate\": true, \"truncation_direction\": \"Left\"}"),
            "[[0.8,0.6]]");
  EXPECT_EQ(Post("/embed", "{\"inputs\": \"" + longer + "\"}").status, 400);
}

TEST_F(TeiTest, EmbedAllAnswersTheVectorOfEachToken) {
  engine_.set_reader([](const Request& request) {
    EXPECT_TRUE(std::get<EmbedSpec>(request.output).all_tokens);
    ReadValues read;
    for (const TokenId id : request.prompt) {
      read.values.push_back(static_cast<float>(id - '0'));
      read.values.push_back(-1);
    }
    return read;
  });
  Start();
  EXPECT_EQ(Ask("/embed_all", R"({"inputs": "34"})"), "[[[3,-1],[4,-1]]]");
  EXPECT_EQ(Ask("/embed_all", R"({"inputs": ["3", "120"]})"), "[[[3,-1]],[[1,-1],[2,-1],[0,-1]]]");
  EXPECT_EQ(Ask("/embed_all", R"({"inputs": "5", "prompt_name": "query"})"), "[[[4,-1],[5,-1]]]");
  EXPECT_EQ(Post("/embed_all", "{}").json()["error"]["param"], "inputs");
}

TEST_F(TeiTest, EmbedSparseLeavesZerosOut) {
  traits_.sparse.emplace();
  traits_.embedding_size = 10;
  traits_.prompts = {{"query", "0"}};
  traits_.classifies = traits_.normalizes = traits_.any_dimensions = false;
  // The elements of a text are at the digits of its tokens, which are distinct and ascending.
  engine_.set_reader([](const Request& request) {
    EXPECT_EQ(std::get<EmbedSpec>(request.output).all_tokens, false);
    ReadValues read;
    for (const TokenId id : request.prompt) {
      read.values.push_back(0.5f * static_cast<float>(read.values.size() + 1));
      read.ids.push_back(id - '0');
    }
    return read;
  });
  Start();
  EXPECT_EQ(Ask("/embed_sparse", R"({"inputs": "27"})"),
            R"([[{"index":2,"value":0.5},{"index":7,"value":1}]])");
  EXPECT_EQ(Ask("/embed_sparse", R"({"inputs": ["3", [49, 53]]})"),
            R"([[{"index":3,"value":0.5}],[{"index":1,"value":0.5},{"index":5,"value":1}]])");
  EXPECT_EQ(Ask("/embed_sparse", R"({"inputs": "7", "prompt_name": "query"})"),
            R"([[{"index":0,"value":0.5},{"index":7,"value":1}]])");
  EXPECT_EQ(Post("/embed_sparse", "{}").json()["error"]["param"], "inputs");
  // Other routes give the zeros, too, and do not normalize by themselves.
  EXPECT_EQ(Ask("/embed", R"({"inputs": "27"})"), "[[0,0,0.5,0,0,0,0,1,0,0]]");
  EXPECT_EQ(Ask("/embed", R"({"inputs": "2", "normalize": true})"), "[[0,0,1,0,0,0,0,0,0,0]]");
  const Json list = *ParseJson(Ask("/v1/embeddings", R"({"input": "1"})"));
  EXPECT_EQ(list["data"][0]["embedding"].dump(), "[0,0.5,0,0,0,0,0,0,0,0]");
  EXPECT_EQ(Ask("/similarity", R"({"inputs": {"source_sentence": "1", "sentences": ["1", "2"]}})"),
            "[1,0]");
  const Json scores =
      *ParseJson(Ask("/v1/score", R"({"text_1": "12", "text_2": ["12", "23", "9"]})"));
  EXPECT_EQ(scores["data"][0]["score"], 2);
  EXPECT_EQ(scores["data"][1]["score"], 0.75);
  EXPECT_EQ(scores["data"][2]["score"], 0);
}

TEST_F(TeiTest, QueriesOfADocumentModelHaveTheWeightsOfTheirTokens) {
  SparseTraits& sparse = traits_.sparse.emplace();
  sparse.documents_only = true;
  sparse.query_weights.assign('3', 0.0f);  // a '3' is beyond the table
  sparse.query_weights['1'] = 2;
  sparse.query_weights['2'] = 0.5;
  traits_.embedding_size = 128;
  traits_.classifies = traits_.normalizes = false;
  engine_.set_reader([](const Request& request) {
    ReadValues read;
    for (const TokenId id : request.prompt) {
      read.values.push_back(static_cast<float>(read.values.size() + 1));
      read.ids.push_back(id);
    }
    return read;
  });
  Start();
  const Json scores = *ParseJson(Ask("/v1/score", R"({"text_1": "2113", "text_2": ["012", "3"]})"));
  EXPECT_EQ(scores["data"][0]["score"], 2 * 2 + 0.5 * 3);
  EXPECT_EQ(scores["data"][1]["score"], 0);
}

TEST_F(TeiTest, SparseVectorsNeedASpladeModel) {
  Start();
  const Answer dense = Post("/embed_sparse", R"({"inputs": "1"})");
  EXPECT_EQ(dense.status, 400);
  EXPECT_EQ(dense.json()["error"]["message"],
            "the model fake gives no sparse vectors: it is no SPLADE model, and was loaded without "
            "--pooling splade");
  traits_.classifies = false;
  traits_.sparse.emplace().documents_only = true;
  traits_.embedding_size = 6 << 20;
  server_.reset();
  Start();
  const Answer large = Post("/embed", R"({"inputs": ["1", "2"]})");
  EXPECT_EQ(large.status, 400);
  EXPECT_EQ(large.json()["error"]["message"],
            "2 inputs have sparse vectors, which this route gives with all their zeros for at most "
            "1: ask /embed_sparse");
  const Answer ranks = Post("/rerank", R"({"query": "1", "documents": ["2"]})");
  EXPECT_EQ(ranks.status, 400);
  EXPECT_TRUE(ranks.json()["error"]["message"].get<std::string>().starts_with(
      "the model fake encodes documents alone, and its files have no weights"));
}

TEST_F(TeiTest, Predict) {
  Start();
  EXPECT_EQ(Ask("/predict", R"({"inputs": "12", "raw_scores": true})"),
            R"([{"score":2.0,"label":"perhaps"},{"score":1.0,"label":"yes"},)"
            R"({"score":0.0,"label":"no"}])");
  EXPECT_EQ(Ask("/predict", R"({"inputs": ["00"]})"),
            R"([{"score":0.3333333432674408,"label":"no"},)"
            R"({"score":0.3333333432674408,"label":"yes"},)"
            R"({"score":0.3333333432674408,"label":"perhaps"}])");
  EXPECT_FALSE(engine_.last_request().second_segment_begin);
  const Json pair = *ParseJson(Ask("/predict", R"({"inputs": ["100", "2"], "raw_scores": true})"));
  EXPECT_EQ(pair[0]["label"], "perhaps");
  EXPECT_EQ(engine_.last_request().prompt, (std::vector<TokenId>{'1', '0', '0', kFakeEos, '2'}));
  EXPECT_EQ(engine_.last_request().second_segment_begin, 4);
  const Json batch =
      *ParseJson(Ask("/predict", R"({"inputs": [["1", "2"], ["30"]], "raw_scores": true})"));
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0], pair);
  EXPECT_EQ(batch[1][0].dump(), R"({"score":3.0,"label":"yes"})");
  for (const char* bad : {R"({"inputs": ["a", "b", "c"]})", R"({"inputs": 5})", R"({"inputs": []})",
                          R"({"inputs": [["a"], "b", 5]})", "{}"}) {
    const Answer answer = Post("/predict", bad);
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_TRUE(answer.json()["error"]["param"].get<std::string>().starts_with("inputs")) << bad;
  }
}

TEST_F(TeiTest, PairsNeedAModelForThem) {
  traits_.encodes_pairs = false;
  Start();
  EXPECT_EQ(Post("/predict", R"({"inputs": [["a", "b"]]})").json()["error"]["param"], "inputs[0]");
}

TEST_F(TeiTest, Similarity) {
  Start();
  EXPECT_EQ(Ask("/similarity",
                R"({"inputs": {"source_sentence": "01", "sentences": ["02", "10", "34"]}})"),
            "[1,0,0.8]");
  for (const char* bad : {"{}", R"({"inputs": "a"})", R"({"inputs": {"source_sentence": "1"}})",
                          R"({"inputs": {"source_sentence": "1", "sentences": []}})",
                          R"({"inputs": {"sentences": ["1"]}})"}) {
    const Answer answer = Post("/similarity", bad);
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_EQ(answer.json()["error"]["param"], "inputs") << bad;
  }
}

}  // namespace
}  // namespace skein::testing
