#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "server/reads/late_interaction.h"
#include "testing/fake_server.h"

namespace skein::testing {
namespace {

TEST(LateInteractionTest, SumsTheLargestProducts) {
  const std::vector<float> query = {1, 0, 0, 1, 2, 2};
  const std::vector<float> document = {3, 1, -1, 4};
  EXPECT_EQ(MaxSim(query, document, 2), 3 + 4 + 8);
  EXPECT_EQ(MaxSim(query, {}, 2), 0);
  const std::vector<float> wide = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(MaxSim(wide, wide, 7), 140);
  std::vector<float> vectors = {3, 4, 0, 0, 0, -2};
  NormalizeEach(vectors, 2);
  EXPECT_EQ(vectors, (std::vector<float>{0.6f, 0.8f, 0, 0, 0, -1}));
  LateInteractionTraits traits;
  traits.skipped_ids = {5, 9};
  const std::vector<TokenId> ids = {9, 7, 5};
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(InteractingVectors(traits, LateSide::kDocument, ids, values),
            (std::vector<float>{3, 4}));
  EXPECT_EQ(InteractingVectors(traits, LateSide::kQuery, ids, values), values);
}

// The fake's tokens are the bytes of a text. A token's vector is (id - '0', 1).
class TokenEmbeddingsTest : public ServerTest {
 protected:
  TokenEmbeddingsTest() {
    LateInteractionTraits& late = traits_.late_interaction.emplace();
    late.query_marker = 'q';
    late.document_marker = 'd';
    late.query_length = late.expansion_length = 5;
    late.document_length = 6;
    late.expansion_id = '9';
    late.skipped_ids = {',', '.'};
    traits_.embedding_size = 2;
    traits_.generates = false;
    engine_.set_reader([](const Request& request) {
      EXPECT_TRUE(std::holds_alternative<EmbedSpec>(request.output));
      ReadValues read;
      for (const TokenId id : request.prompt) {
        read.values.push_back(static_cast<float>(id - '0'));
        read.values.push_back(1);
      }
      return read;
    });
  }

  Json Data(const std::string& body) {
    const Answer answer = Post("/pooling", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["data"];
  }
  std::string LastPrompt() {
    const std::vector<TokenId>& ids = engine_.last_request().prompt;
    return {ids.begin(), ids.end()};
  }
};

TEST_F(TokenEmbeddingsTest, SidesHaveTheirMarkersAndLengths) {
  Start();
  const Json document = Data(R"({"input": "1,2", "task": "token_embed", "normalize": false})");
  EXPECT_EQ(LastPrompt(), "1d,2");
  EXPECT_FALSE(engine_.last_request().num_attended);
  EXPECT_EQ(document[0]["object"], "pooling");
  EXPECT_EQ(document[0]["index"], 0);
  EXPECT_EQ(document[0]["data"].dump(), "[[1,1],[52,1],[2,1]]") << "without the comma";
  const Json query = Data(R"({"input": ["1,"], "prompt_name": "query", "use_activation": false})");
  EXPECT_EQ(LastPrompt(), "1q,99");
  EXPECT_EQ(engine_.last_request().num_attended, 3);
  EXPECT_EQ(query[0]["data"].dump(), "[[1,1],[65,1],[-4,1],[9,1],[9,1]]");
  Data(R"({"input": "1234567", "prompt_name": "query"})");
  EXPECT_EQ(LastPrompt(), "1q234");
  EXPECT_FALSE(engine_.last_request().num_attended);
  Data(R"({"input": "1234567"})");
  EXPECT_EQ(LastPrompt(), "1d2345");
  const Json unit = Data(R"({"input": "0"})");
  EXPECT_EQ(unit[0]["data"][0].dump(), "[0,1]");
  const double norm = unit[0]["data"][1][0].get<double>();
  EXPECT_NEAR(norm, 52 / std::sqrt(52.0 * 52 + 1), 1e-6);
  // Ids are taken as they are.
  EXPECT_EQ(Data(R"({"input": [[44, 49]], "normalize": false})")[0]["data"].dump(),
            "[[-4,1],[1,1]]");
  EXPECT_EQ(LastPrompt(), ",1");
}

TEST_F(TokenEmbeddingsTest, ExpansionMayBeAttendedTo) {
  traits_.late_interaction->attends_to_expansion = true;
  traits_.late_interaction->query_marker = -1;
  traits_.prompts = {{"query", "7"}};
  Start();
  Data(R"({"input": "1", "prompt_name": "query"})");
  EXPECT_EQ(LastPrompt(), "71999");
  EXPECT_FALSE(engine_.last_request().num_attended);
}

TEST_F(TokenEmbeddingsTest, ScoresAreLateInteractions) {
  Start();
  const Json json = Post("/v1/score", R"({"queries": "12", "documents": ["3,", "0"]})").json();
  const auto angle = [](double x) { return std::atan2(1, x); };
  // Tokens 1, q, 2, 9, 9 with 3, d; the comma is left out.
  const auto best = [&](std::vector<double> document) {
    double sum = 0;
    for (const double token : {1.0, double{'q' - '0'}, 2.0, 9.0, 9.0}) {
      double most = -1;
      for (const double other : document) {
        most = std::max(most, std::cos(angle(token) - angle(other)));
      }
      sum += most;
    }
    return sum;
  };
  EXPECT_NEAR(json["data"][0]["score"].get<double>(), best({3, 'd' - '0'}), 1e-6);
  EXPECT_NEAR(json["data"][1]["score"].get<double>(), best({0, 'd' - '0'}), 1e-6);
  const Json pairs =
      Post("/v1/score", R"({"queries": ["12", "12"], "documents": ["3,", "0"]})").json();
  EXPECT_EQ(pairs["data"], json["data"]);
  const Json ranks = Post("/rerank", R"({"query": "12", "documents": ["0", "3,"]})").json();
  EXPECT_EQ(ranks["results"][0]["index"], 1);
  EXPECT_EQ(ranks["results"][0]["relevance_score"], json["data"][0]["score"]);
}

TEST_F(TokenEmbeddingsTest, RefusesByName) {
  Start();
  const auto param = [&](const std::string& path, const std::string& body) {
    const Answer answer = Post(path, body);
    EXPECT_EQ(answer.status, 400) << body;
    return answer.json()["error"]["param"].get<std::string>();
  };
  EXPECT_EQ(param("/pooling", R"({"input": "1", "prompt_name": "passage"})"), "prompt_name");
  EXPECT_EQ(param("/pooling", R"({"input": "1", "encoding_format": "base64"})"), "encoding_format");
  EXPECT_EQ(param("/pooling", R"({"input": "1", "task": "embed"})"), "model");
  EXPECT_EQ(param("/pooling", R"({"input": ""})"), "input");
  EXPECT_EQ(param("/pooling", R"({"task": "token_embed"})"), "input");
  const Answer embeddings = Post("/v1/embeddings", R"({"input": "1"})");
  EXPECT_EQ(embeddings.status, 400);
  EXPECT_NE(embeddings.body.find("/pooling gives (task token_embed)"), std::string::npos);
}

}  // namespace
}  // namespace skein::testing
