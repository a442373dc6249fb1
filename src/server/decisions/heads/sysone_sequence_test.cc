// Compares requests to models of the package sysone with the package's own tokens and answers
// (tools/make_golden_sysone.py).

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

Json ReadGolden(const std::string& name, const std::string& file) {
  std::ifstream in(SKEIN_SOURCE_DIR "/tests/data/sysone/" + name + "/" + file);
  return Json::parse(in);
}

struct SysoneCase {
  const char* name;
  bool encoder;
  const char *cls, *sep, *mask, *bos;
  int32_t max_len = 2048;
};

constexpr SysoneCase kSysoneCases[] = {
    {"modernbert-parallel", true, "[CLS]", "[SEP]", "[MASK]", ""},
    {"qwen3-parallel", false, "", "", "", "", 5600},
    {"gemma3-parallel", false, "", "", "", "<bos>"},
    {"llama-sequential", false, "", "", "", "<|begin_of_text|>"},
    {"eurobert-sequential", true, "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", ""}};

class SysoneServer : public DecisionServerTest {
 protected:
  void StartSysone(const SysoneCase& which, int32_t max_len = 0) {
    tokenizer_ =
        Tokenizer::Load(std::string(SKEIN_SOURCE_DIR "/tests/data/sysone/") + which.name + "/base")
            .value();
    StartModel([&](ModelEntry* entry) {
      entry->names = {which.name};
      entry->tokenizer = tokenizer_.get();
      entry->chat_template = nullptr;
      entry->max_model_len = 8192;
      entry->traits.generates = false;
      DecisionModelTraits& traits = entry->traits.decision_model.emplace();
      traits.family = "sysone";
      traits.max_len = max_len > 0 ? max_len : which.max_len;
      traits.parallel = std::string(which.name).find("parallel") != std::string::npos;
      traits.temperature = {1.3, 0.8, 2.0};
      traits.temperature_by_options = {{"choice:11+", 0.6}, {"choice:2", 4.5}, {"score:3-5", 1.7}};
      traits.cls_token = which.cls;
      traits.sep_token = which.sep;
      traits.mask_token = which.mask;
      traits.sysone = {.base = which.name,
                       .encoder = which.encoder,
                       .bos_token = which.bos,
                       .max_state_tokens = 700,
                       .max_option_tokens = 12,
                       .task_lines = {"Choose the best option.", "Rate it on the given scale.",
                                      "Answer yes or no."},
                       .question = "Question: {instructions}",
                       .choice_option = "{label}: {description}",
                       .score_option = "{index}: {level}",
                       .noul_labels = {"No", "Yes"}};
    });
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

class SysoneSequenceTest : public SysoneServer, public ::testing::WithParamInterface<SysoneCase> {};

void CheckRequest(const Request& request, const Json& question, const std::string& name) {
  EXPECT_EQ(request.prompt, question["ids"].get<std::vector<TokenId>>()) << name;
  const auto& decide = std::get<DecideSpec>(request.output);
  EXPECT_EQ(decide.markers, question["markers"].get<std::vector<int32_t>>()) << name;
  EXPECT_EQ(decide.option_bounds, question["option_bounds"].get<std::vector<int32_t>>()) << name;
  EXPECT_EQ(decide.summary, question["summary"].get<int32_t>()) << name;
}

TEST_P(SysoneSequenceTest, TokensAndAnswersAreThoseOfThePackage) {
  const SysoneCase& which = GetParam();
  StartSysone(which);
  AnswersAreThoseOf(ReadGolden(which.name, "golden.json"), CheckRequest, [&which](Json* json) {
    EXPECT_EQ((*json)["model"], which.name);
    EXPECT_TRUE((*json)["id"].is_string());
    json->erase("model");
    json->erase("id");
  });
}

INSTANTIATE_TEST_SUITE_P(Models, SysoneSequenceTest, ::testing::ValuesIn(kSysoneCases),
                         [](const auto& model) {
                           std::string name = model.param.name;
                           std::erase(name, '-');
                           return name;
                         });

class SysoneRefusalTest : public SysoneServer {};

TEST_F(SysoneRefusalTest, WhatDoesNotFitIsRefusedByName) {
  StartSysone(kSysoneCases[0], 30);
  const auto refusal = [&](const std::string& question) {
    const Answer answer =
        Post("/v1/systemone", R"({"state": "x y z", "questions": {"q": )" + question + "}}");
    EXPECT_EQ(answer.status, 400) << answer.body;
    const Json json = answer.json();
    EXPECT_EQ(json["error"]["param"], "questions.q") << answer.body;
    return json["error"]["message"].get<std::string>();
  };
  EXPECT_NE(refusal(R"({"type": "choice", "instructions": "Which of all these words is it?",
                        "criteria": ["one", "two", "three", "four", "five", "six"]})")
                .find("max_len allows 30"),
            std::string::npos);
  EXPECT_NE(
      refusal(R"({"type": "choice", "instructions": "x", "criteria": ["one"]})").find("at least 2"),
      std::string::npos);
  EXPECT_NE(refusal(R"({"type": "noul", "instructions": " \n "})").find("white space"),
            std::string::npos);
}

TEST_F(SysoneRefusalTest, WrongThresholdsAreRefusedByName) {
  StartSysone(kSysoneCases[0]);
  for (const auto& [abstain, field] :
       {std::pair("2", "abstain"), std::pair(R"({"noul": true})", "abstain.noul"),
        std::pair(R"({"q": {"threshold": -1}})", "abstain.q"), std::pair("\"x\"", "abstain")}) {
    const Answer answer =
        Post("/v1/systemone", std::string(R"({"state": "x", "questions": {"q": {"type": "noul",
             "instructions": "y"}}, "abstain": )") +
                                  abstain + "}");
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], field) << answer.body;
  }
}

}  // namespace
}  // namespace skein::testing
