// Compares requests to Clef models with the tokens, spans and answers of other servers' code
// (tools/make_golden_clef.py).

#include "server/decisions/heads/clef_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/json/python_json.h"
#include "testing/decision_server.h"

namespace skein::testing {
namespace {

std::string ClefFolder(const std::string& name) {
  return SKEIN_SOURCE_DIR "/tests/data/clef/" + name;
}

class ClefServer : public DecisionServerTest {
 protected:
  void StartClef(int32_t max_model_len = 20000,
                 UserSpecialTokens special = UserSpecialTokens::kDefault) {
    tokenizer_ = Tokenizer::Load(ClefFolder("untied")).value();
    StartModel([&](ModelEntry* entry) {
      entry->names = {"untied"};
      entry->tokenizer = tokenizer_.get();
      entry->chat_template = nullptr;
      entry->max_model_len = max_model_len;
      entry->user_special_tokens = special;
      entry->traits.generates = false;
      DecisionModelTraits& traits = entry->traits.decision_model.emplace();
      traits.family = "clef";
      traits.max_len = 16384;
      traits.clef = ClefTraits{"Qwen3_5ForConditionalGeneration"};
    });
  }

  Answer Ask(const Json& questions, const std::string& state = "It rained.") {
    return Post("/v1/systemone", Json{{"state", state}, {"questions", questions}}.dump());
  }
  void ExpectRefused(const Json& questions, const std::string& param, const std::string& words) {
    const Answer answer = Ask(questions);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << answer.body;
    EXPECT_NE(answer.body.find(words), std::string::npos) << answer.body;
  }

  // The number of tokens <|im_end|> in the prompt of a request whose texts contain it twice.
  int64_t CountImEnd() {
    const Json question = {{"type", "noul"}, {"instructions", "<|im_end|>?"}};
    EXPECT_EQ(Ask({{"q", question}}, "a <|im_end|> b").status, 200);
    return std::ranges::count(engine_.last_group().at(0).prompt,
                              tokenizer_->TokenToId("<|im_end|>").value());
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

class ClefPlanTest : public ClefServer {};

void CheckSpans(const DecideSpec& decide, const Json& questions) {
  constexpr int32_t kTypes[] = {2, 0, 1};  // of noul, choice, score
  const JointSchema& schema = decide.schema;
  ASSERT_EQ(schema.types.size(), questions.size());
  size_t i = 0, at = 0;
  for (const auto& [id, question] : questions.items()) {
    EXPECT_EQ(schema.types[i], kTypes[question["type"].get<int32_t>()]) << id;
    EXPECT_EQ(schema.text_begins[i], question["text"][0]) << id;
    EXPECT_EQ(schema.text_ends[i], question["text"][1]) << id;
    ASSERT_EQ(schema.option_counts[i++], static_cast<int32_t>(question["options"].size())) << id;
    for (const auto& [name, option] : question["options"].items()) {
      EXPECT_EQ(decide.markers.at(at), option[0]) << id << " " << name;
      EXPECT_EQ(schema.option_ends.at(at++), option[1]) << id << " " << name;
    }
  }
}

TEST_F(ClefPlanTest, TokensSpansAndAnswersAreThoseOfTheFamily) {
  StartClef();
  std::ifstream in(ClefFolder("untied") + "/golden.json");
  const Json golden = Json::parse(in);
  for (const Json& row : golden["rows"]) {
    engine_.set_reader([&row](const Request&) {
      ReadValues read;
      for (const auto& [id, question] : row["questions"].items()) {
        for (const auto& [name, option] : question["options"].items()) {
          read.values.push_back(option[2].get<float>());
        }
      }
      return read;
    });
    const Answer answer = Post("/v1/systemone", row["body"].dump());
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::vector<Request> requests = engine_.last_group();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].prompt, row["ids"].get<std::vector<TokenId>>());
    CheckSpans(std::get<DecideSpec>(requests[0].output), row["questions"]);
    Json json = answer.json();
    EXPECT_EQ(json["model"], "untied");
    json.erase("model");
    EXPECT_EQ(json, row["answer"]) << json.dump() << "\n" << row["answer"].dump();
  }
}

// The prompt itself has <|im_end|> twice, the caller's texts have it twice, too.
TEST_F(ClefPlanTest, SpecialTokensOfCallersAreTokens) {
  StartClef();
  EXPECT_EQ(CountImEnd(), 4);
}

TEST_F(ClefPlanTest, SpecialTokensOfCallersCanBeText) {
  StartClef(20000, UserSpecialTokens::kPlain);
  EXPECT_EQ(CountImEnd(), 2);
}

TEST_F(ClefPlanTest, WhatDoesNotFitIsRefusedByName) {
  StartClef(300);
  Json options = Json::object();
  for (int i = 0; i < 40; ++i) options["option number " + std::to_string(i)] = nullptr;
  const Json choice = {{"type", "choice"}, {"instructions", "Which?"}, {"criteria", options}};
  ExpectRefused({{"q", choice}}, "questions", "reads at most 300");
  Json many = Json::object();
  for (int i = 0; i < 26; ++i) many["q" + std::to_string(i)] = choice;
  ExpectRefused(many, "questions", "1040 options together; the model reads at most 1024");
  std::string words;
  for (int i = 0; i < 10000; ++i) words += "x y ";
  const Json noul = {{"type", "noul"}, {"instructions", words}};
  ExpectRefused({{"q", noul}}, "questions", "reads at most 300");
}

TEST(SortedJson, IsWrittenAsPythonDoes) {
  const auto text = [](const char* json) { return DumpSortedJson(Json::parse(json)); };
  EXPECT_EQ(text(R"({"b": [1, 2.0, {"z": {}, "a": []}], "a": null, "é": "\u0001\"", "Z": 1e-7})"),
            R"({"Z":1e-07,"a":null,"b":[1,2.0,{"a":[],"z":{}}],"é":"\u0001\""})");
}

}  // namespace
}  // namespace skein::testing
