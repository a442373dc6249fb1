// Compares requests to Kev models with the tokens and answers of the family's own code
// (tools/make_golden_kev.py).

#include "server/decisions/heads/kev_sequence.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

std::string KevFolder(const std::string& name) {
  return SKEIN_SOURCE_DIR "/tests/data/kev/" + name;
}

class KevServer : public DecisionServerTest {
 protected:
  void StartKev(const std::string& name, double temperature, int32_t max_model_len = 8192) {
    const bool whole = name == "qwen3.5-whole";
    tokenizer_ = Tokenizer::Load(KevFolder(name) + (whole ? "" : "/base")).value();
    StartModel([&](ModelEntry* entry) {
      entry->names = {name};
      entry->tokenizer = tokenizer_.get();
      entry->chat_template = nullptr;
      entry->max_model_len = max_model_len;
      entry->traits.generates = false;
      DecisionModelTraits& traits = entry->traits.decision_model.emplace();
      traits.family = "kev";
      traits.max_len = max_model_len;
      traits.temperature.fill(temperature);
      traits.kev = KevTraits{"Qwen3_5ForCausalLM", ""};
    });
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

class KevSequenceTest : public KevServer,
                        public ::testing::WithParamInterface<std::pair<const char*, double>> {};

void CheckKevRequest(const Request& request, const Json& question, const std::string& id) {
  EXPECT_EQ(request.prompt, question["ids"].get<std::vector<TokenId>>()) << id;
  EXPECT_EQ(request.group.parent_prefix_len, question["shared"].get<int32_t>());
  const auto& decide = std::get<DecideSpec>(request.output);
  EXPECT_EQ(decide.markers, question["markers"].get<std::vector<int32_t>>()) << id;
  EXPECT_EQ(decide.summary, question["summary"].get<int32_t>()) << id;
  EXPECT_TRUE(decide.option_bounds.empty());
}

TEST_P(KevSequenceTest, TokensAndAnswersAreThoseOfTheFamily) {
  const auto& [name, temperature] = GetParam();
  StartKev(name, temperature);
  std::ifstream in(KevFolder(name) + "/golden.json");
  AnswersAreThoseOf(Json::parse(in), CheckKevRequest, [model = name](Json* json) {
    EXPECT_EQ((*json)["model"], model);
    json->erase("model");
  });
}

INSTANTIATE_TEST_SUITE_P(Models, KevSequenceTest,
                         ::testing::Values(std::pair("qwen3.5-adapter", 1.4),
                                           std::pair("qwen3.5-whole", 0.7),
                                           std::pair("qwen3-adapter", 1.0)),
                         [](const auto& model) {
                           std::string name = model.param.first;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

TEST(KevText, DelimitersOfCallersAreNone) {
  EXPECT_EQ(WithoutDelimiters("a<|box_end|>b"), "a<\u00a6box_end\u00a6>b");
  EXPECT_EQ(WithoutDelimiters("<|<|x|>|> <||> <|a b|> <|a"),
            "<|<\u00a6x\u00a6>|> <||> <|a b|> <|a");
  EXPECT_EQ(WithoutDelimiters("<|a<|b|><|c|>"), "<|a<\u00a6b\u00a6><\u00a6c\u00a6>");
  EXPECT_EQ(WithoutDelimiters("<<|x|>>"), "<<\u00a6x\u00a6>>");
}

TEST(KevText, JsonIsRenderedAsTheFamilyDoes) {
  const auto text = [](const char* json) { return KevText(Json::parse(json)); };
  EXPECT_EQ(text("null"), "");
  EXPECT_EQ(text("true"), "True");
  EXPECT_EQ(text("[1, 2.0, 1e-7, 1e16]"), "- 1\n- 2.0\n- 1e-07\n- 1e+16");
  EXPECT_EQ(text(R"({"a": {"b": [false, "x"]}, "c": null})"),
            "a:\n  b:\n    - False\n    - x\nc: ");
  EXPECT_EQ(text(R"([{"a": 1, "b": 2}, ["  x"]])"), "- a: 1\n  b: 2\n- - x");
}

class KevRefusalTest : public KevServer {};

TEST_F(KevRefusalTest, WhatDoesNotFitIsRefusedByName) {
  StartKev("qwen3-adapter", 1, 40);
  const std::string state = std::string(200, 'x') + " y";
  const Answer answer =
      Post("/v1/systemone", R"({"state": ")" + state +
                                R"(", "questions": {"q": {"type": "noul", "instructions": "z"}}})");
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_EQ(answer.json()["error"]["param"], "questions.q") << answer.body;
  EXPECT_NE(answer.json()["error"]["message"].get<std::string>().find("at most 40"),
            std::string::npos);
}

TEST_F(KevRefusalTest, OtherModelsTakeTextsAlone) {
  StartKev("qwen3-adapter", 1);
  const std::string body = R"({"state": "x", "questions": {"q": {"type": "noul",
      "instructions": ["z"], "criteria": {"true": {"a": 1}}}}})";
  EXPECT_EQ(Post("/v1/systemone", body).status, 200);
}

}  // namespace
}  // namespace skein::testing
