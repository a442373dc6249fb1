#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "server/json/base64.h"
#include "server/reads/vectors.h"
#include "testing/fake_server.h"

namespace skein::testing {
namespace {

// The fake's vector of a prompt: its length, its first token, its last token, 12.
std::vector<float> VectorOf(const Request& request) {
  return {static_cast<float>(request.prompt.size()), static_cast<float>(request.prompt.front()),
          static_cast<float>(request.prompt.back()), 12};
}

std::vector<float> Unit(std::vector<float> values) {
  Normalize(values);
  return values;
}

class EmbeddingsTest : public ServerTest {
 protected:
  EmbeddingsTest() {
    traits_.embeds = true;
    traits_.embedding_size = 4;
    traits_.any_dimensions = true;
    traits_.prompts = {{"query", "Q: "}, {"passage", ""}};
    engine_.set_reader([](const Request& request) { return ReadValues{VectorOf(request), 0}; });
  }

  Json Embed(const std::string& fields) {
    const Answer answer = Post("/v1/embeddings", "{" + fields + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  std::vector<std::vector<TokenId>> Prompts() {
    std::vector<std::vector<TokenId>> prompts;
    for (const Request& request : engine_.last_group()) prompts.push_back(request.prompt);
    return prompts;
  }
};

TEST_F(EmbeddingsTest, FormsOfInput) {
  Start();
  const Json one = Embed(R"("model": "fake", "input": "ab")");
  EXPECT_EQ(one["object"], "list");
  EXPECT_EQ(one["model"], "fake");
  EXPECT_EQ(one["usage"].dump(), R"({"prompt_tokens":2,"completion_tokens":0,"total_tokens":2,)"
                                 R"("prompt_tokens_details":{"cached_tokens":2}})");
  ASSERT_EQ(one["data"].size(), 1u);
  EXPECT_EQ(one["data"][0]["object"], "embedding");
  EXPECT_EQ(one["data"][0]["index"], 0);
  EXPECT_EQ(one["data"][0]["embedding"].get<std::vector<float>>(), Unit({2, 97, 98, 12}));
  EXPECT_EQ(Embed(R"("input": [97, 98])")["data"], one["data"]);
  EXPECT_TRUE(std::holds_alternative<EmbedSpec>(engine_.last_request().output));
  const Json texts = Embed(R"("input": ["ab", "c"], "priority": -4, "user": "me")");
  ASSERT_EQ(texts["data"].size(), 2u);
  EXPECT_EQ(texts["data"][0], one["data"][0]);
  EXPECT_EQ(texts["data"][1]["index"], 1);
  EXPECT_EQ(texts["data"][1]["embedding"].get<std::vector<float>>(), Unit({1, 99, 99, 12}));
  EXPECT_EQ(texts["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(engine_.last_group().size(), 2u);
  EXPECT_EQ(engine_.last_request().priority, -4);
  EXPECT_EQ(engine_.last_request().user, "me");
  EXPECT_EQ(Embed(R"("input": [[97, 98], [99]])")["data"], texts["data"]);
}

TEST_F(EmbeddingsTest, Base64HoldsTheSameFloats) {
  Start();
  const Json json = Embed(R"("input": ["ab", "c"], "encoding_format": "base64")");
  for (size_t i = 0; i < 2; ++i) {
    std::string expected;
    const std::vector<float> unit =
        Unit(i == 0 ? std::vector<float>{2, 97, 98, 12} : std::vector<float>{1, 99, 99, 12});
    AppendBase64(std::as_bytes(std::span(unit)), &expected);
    EXPECT_EQ(json["data"][i]["embedding"], expected);
  }
}

TEST_F(EmbeddingsTest, BytesAreTheSameFloatsAlone) {
  Start();
  for (const char* path : {"/v1/embeddings", "/pooling"}) {
    const Answer answer = Post(path, R"({"input": ["ab", "c"], "encoding_format": "bytes_only"})");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.Field("Content-Type"), "application/octet-stream");
    std::vector<float> floats(answer.body.size() / sizeof(float));
    std::memcpy(floats.data(), answer.body.data(), floats.size() * sizeof(float));
    std::vector<float> expected = Unit({2, 97, 98, 12});
    const std::vector<float> second = Unit({1, 99, 99, 12});
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(floats, expected);
    EXPECT_EQ(answer.body.size(), expected.size() * sizeof(float));
  }
}

TEST_F(EmbeddingsTest, DimensionsAreCutThenNormalized) {
  Start();
  EXPECT_EQ(
      Embed(R"("input": "ab", "dimensions": 2)")["data"][0]["embedding"].get<std::vector<float>>(),
      Unit({2, 97}));
  EXPECT_EQ(
      Embed(R"("input": "ab", "dimensions": 2, "normalize": false)")["data"][0]["embedding"].dump(),
      "[2,97]");
  for (const char* bad : {"5", "0", "-1", "1.5", "\"2\""}) {
    const Answer answer =
        Post("/v1/embeddings", std::string(R"({"input": "a", "dimensions": )") + bad + "}");
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.json()["error"]["param"], "dimensions");
  }
}

TEST_F(EmbeddingsTest, DimensionsOnlyWhereTheModelAllowsThem) {
  traits_.any_dimensions = false;
  traits_.normalizes = false;
  Start();
  EXPECT_EQ(Embed(R"("input": "ab", "dimensions": 4)")["data"][0]["embedding"].dump(),
            "[2,97,98,12]");
  EXPECT_EQ(Post("/v1/embeddings", R"({"input": "a", "dimensions": 2})").json()["error"]["message"],
            "dimensions must be 4: the model's embeddings cannot be cut, got 2");
  traits_.matryoshka_dimensions = {1, 3};
  server_.reset();
  Start();
  EXPECT_EQ(Embed(R"("input": "ab", "dimensions": 3)")["data"][0]["embedding"].dump(), "[2,97,98]");
  EXPECT_EQ(Post("/v1/embeddings", R"({"input": "a", "dimensions": 2})").json()["error"]["message"],
            "dimensions must be one of 1, 3, got 2");
}

TEST_F(EmbeddingsTest, PromptsByName) {
  traits_.default_prompt = "query";
  Start();
  (void)Embed(R"("input": ["x", [120]])");
  EXPECT_EQ(Prompts(), (std::vector<std::vector<TokenId>>{{'Q', ':', ' ', 'x'}, {'x'}}));
  (void)Embed(R"("input": "x", "prompt_name": "passage")");
  EXPECT_EQ(Prompts(), (std::vector<std::vector<TokenId>>{{'x'}}));
  const Answer unknown = Post("/v1/embeddings", R"({"input": "x", "prompt_name": "no"})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.json()["error"]["message"],
            "prompt_name must be one of passage, query, got \"no\"");
  EXPECT_EQ(
      Post("/v1/embeddings", R"({"input": [1], "prompt_name": "query"})").json()["error"]["param"],
      "prompt_name");
}

TEST_F(EmbeddingsTest, Truncation) {
  Start();
  (void)Embed(R"("input": ["abcdef", [1, 2, 3, 4]], "truncate_prompt_tokens": 3)");
  EXPECT_EQ(Prompts(), (std::vector<std::vector<TokenId>>{{'a', 'b', 'c'}, {1, 2, 3}}));
  (void)Embed(R"("input": "abcdef", "truncate_prompt_tokens": 3, "truncation_side": "left")");
  EXPECT_EQ(Prompts(), (std::vector<std::vector<TokenId>>{{'d', 'e', 'f'}}));
  const std::string longest(4096, 'x');
  EXPECT_EQ(Embed("\"input\": \"" + longest + "\"")["usage"]["prompt_tokens"], 4096);
  const Answer longer = Post("/v1/embeddings", "{\"input\": [\"a\", \"" + longest + "x\"]}");
  EXPECT_EQ(longer.status, 400);
  EXPECT_EQ(longer.json()["error"]["param"], "input[1]");
  EXPECT_NE(longer.json()["error"]["message"].get<std::string>().find("at most 4096"),
            std::string::npos);
  for (const char* how : {"\"truncate_prompt_tokens\": -1", "\"truncate\": true",
                          "\"truncate_prompt_tokens\": 10000"}) {
    EXPECT_EQ(Embed("\"input\": \"" + longest + "x\", " + how)["usage"]["prompt_tokens"], 4096);
  }
}

TEST_F(EmbeddingsTest, SpecialTokensSurviveTruncation) {
  const auto bert = Tokenizer::Load(SKEIN_SOURCE_DIR "/tests/data/tokenizers/bert-uncased-style");
  ASSERT_TRUE(bert.ok()) << bert.status().message();
  ModelRegistry registry;
  ModelEntry entry = Registry().entries()[0];
  entry.tokenizer = bert.value().get();
  registry.Add(std::move(entry));
  Start({}, /*set_models=*/false);
  server_->SetModels(std::move(registry));
  const auto id = [&](const char* token) { return *bert.value()->TokenToId(token); };
  // The fake engine reports a small vocabulary; the ids are still those of the tokenizer.
  (void)Embed(R"("input": "the time of a day", "truncate_prompt_tokens": 4)");
  EXPECT_EQ(Prompts(),
            (std::vector<std::vector<TokenId>>{{id("[CLS]"), id("the"), id("time"), id("[SEP]")}}));
}

TEST_F(EmbeddingsTest, MistakesAreNamed) {
  Start();
  const std::string wide = std::string(2000, '1');
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "input"},
      {R"({"input": ""})", "input"},
      {R"({"input": []})", "input"},
      {R"({"input": ["a", ""]})", "input[1]"},
      {R"({"input": ["a", []]})", "input[1]"},
      {R"({"input": ["a", 5]})", "input[1]"},
      {R"({"input": [1, 257]})", "input"},
      {R"({"input": [1, "a"]})", "input"},
      {R"({"input": [[1], [-1]]})", "input[1]"},
      {R"({"input": {"a": 1}})", "input"},
      {R"({"input": "a", "encoding_format": "hex"})", "encoding_format"},
      {R"({"input": "a", "truncate_prompt_tokens": 0})", "truncate_prompt_tokens"},
      {R"({"input": "a", "truncation_side": "up"})", "truncation_side"},
      {R"({"input": "a", "normalize": 1})", "normalize"},
      {R"({"input": "a", "priority": "high"})", "priority"},
      {R"({"input": "a", "model": "other"})", "model"},
  };
  for (const auto& [body, param] : cases) {
    const Answer answer = Post("/v1/embeddings", body);
    EXPECT_EQ(answer.status, std::string(param) == "model" ? 404 : 400) << body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << answer.body;
  }
  std::string many = "{\"input\": [[1]";
  for (int i = 0; i < 1000; ++i) many += ",[1]";
  EXPECT_EQ(Post("/v1/embeddings", many + "]}").json()["error"]["message"],
            "input must hold 1 to 1000 inputs, got 1001");
  EXPECT_EQ(engine_.num_running(), 0);
}

TEST_F(EmbeddingsTest, ModelsWithoutTheOutputSaySo) {
  traits_ = {};
  Start();
  for (const char* path : {"/v1/embeddings", "/pooling", "/classify", "/v1/classify", "/embed",
                           "/predict", "/similarity"}) {
    const Answer answer = Post(path, R"({"input": "a", "inputs": "a"})");
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_EQ(answer.json()["error"]["param"], "model") << path;
  }
}

TEST_F(EmbeddingsTest, Pooling) {
  Start();
  const Json json =
      Post("/pooling", R"({"input": ["ab"], "task": "embed", "use_activation": false})").json();
  EXPECT_EQ(json["data"].dump(), R"([{"object":"pooling","index":0,"data":[2,97,98,12]}])");
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("pool-"));
  EXPECT_EQ(json["usage"]["prompt_tokens"], 2);
  const Json unit = Post("/pooling", R"({"input": "ab", "dimensions": 2})").json();
  EXPECT_EQ(unit["data"][0]["data"].get<std::vector<float>>(), Unit({2, 97}));
  const Answer other = Post("/pooling", R"({"input": "a", "task": "token_embed"})");
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(other.json()["error"]["param"], "task");
}

class ClassifyTest : public ServerTest {
 protected:
  ClassifyTest() {
    traits_.classifies = true;
    traits_.class_labels = {"low", "high"};
    engine_.set_reader([](const Request& request) {
      return ReadValues{{0, std::log(static_cast<float>(request.prompt.size()))}, 0};
    });
  }
};

TEST_F(ClassifyTest, Probabilities) {
  Start();
  const Answer answer = Post("/classify", R"({"input": ["abc", [65]]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json data = answer.json()["data"];
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0]["label"], "high");
  EXPECT_EQ(data[0]["num_classes"], 2);
  EXPECT_NEAR(data[0]["probs"][1].get<double>(), 0.75, 1e-6);
  EXPECT_EQ(data[1]["index"], 1);
  EXPECT_EQ(data[1]["label"], "low");  // of equal classes the first
  EXPECT_EQ(data[1]["probs"].dump(), "[0.5,0.5]");
  EXPECT_EQ(answer.json()["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(Post("/v1/classify", R"({"input": ["abc", [65]]})").json()["data"], data);
  const Json raw = Post("/classify", R"({"input": "a", "use_activation": false})").json();
  EXPECT_EQ(raw["data"][0]["probs"].dump(), "[0.0,0.0]");
  const Json pooled = Post("/pooling", R"({"input": "a"})").json();
  EXPECT_EQ(pooled["data"][0]["data"].dump(), "[0.5,0.5]");
}

TEST_F(ClassifyTest, SeveralLabelsAtOnceAndSingleScores) {
  traits_.multi_label = true;
  Start();
  const Json json = Post("/classify", R"({"input": "abc"})").json();
  EXPECT_EQ(json["data"][0]["probs"][0], 0.5);
  EXPECT_NEAR(json["data"][0]["probs"][1].get<double>(), 0.75, 1e-6);
  server_.reset();
  traits_ = {};
  traits_.classifies = true;
  engine_.set_reader([](const Request&) { return ReadValues{{0}, 0}; });
  Start();
  EXPECT_EQ(Post("/classify", R"({"input": "abc"})").json()["data"].dump(),
            R"([{"index":0,"label":"LABEL_0","probs":[0.5],"num_classes":1}])");
}

}  // namespace
}  // namespace skein::testing
