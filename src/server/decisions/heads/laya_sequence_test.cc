// Compares requests to a Laya model with the tokens and answers of the model's own package
// (tools/make_golden_laya.py).

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

constexpr char kDir[] = SKEIN_SOURCE_DIR "/tests/data/laya";

Json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

class LayaSequenceTest : public DecisionServerTest {
 protected:
  void StartLaya(UserSpecialTokens special = UserSpecialTokens::kDefault, bool parallel = false) {
    StartModel([&](ModelEntry* entry) {
      entry->user_special_tokens = special;
      entry->names = {"laya"};
      entry->tokenizer = tokenizer_.get();
      entry->chat_template = nullptr;
      entry->max_model_len = 2048;
      entry->traits.generates = false;
      entry->traits.decision_model = {
          .family = "laya",
          .max_len = 256,
          .head_max_len = 96,
          .parallel = parallel,
          .temperature = {1.3, 0.8, 2.0},
          .temperature_by_options = {{"choice:11+", 0.5}, {"score:3-5", 1.7}, {"choice:2", 5}},
          .cls_token = "[CLS]",
          .sep_token = "[SEP]",
          .mask_token = "[MASK]"};
    });
  }

  void ExpectPackage(const std::string& dir);

  // The number of [SEP] tokens that the model reads if the state holds one more.
  int64_t NumSeparators() {
    engine_.set_reader([](const Request&) { return ReadValues{.values = {1, 2, 3}}; });
    const Answer answer = Post("/v1/systemone", R"({"state": "a [SEP] b", "questions": {"q":
                               {"type": "noul", "instructions": "x"}}})");
    EXPECT_EQ(answer.status, 200) << answer.body;
    const TokenId sep = tokenizer_->TokenToId("[SEP]").value();
    return std::ranges::count(engine_.last_group()[0].prompt, sep);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = Tokenizer::Load(std::string(kDir) + "/tokenizer").value();
};

// The requests of a golden file must give its tokens, its positions and, with its logits, its
// answers.
void LayaSequenceTest::ExpectPackage(const std::string& dir) {
  const Json golden = ReadJson(dir + "/golden.json");
  std::map<std::vector<TokenId>, std::vector<float>> values;
  engine_.set_reader([&values](const Request& request) {
    ReadValues read;
    read.values = values.at(request.prompt);
    return read;
  });
  for (const Json& row : golden["rows"]) {
    for (const auto& [name, question] : row["questions"].items()) {
      auto& own = values[question["ids"].get<std::vector<TokenId>>()];
      own = question["logits"].get<std::vector<float>>();
      for (const Json& action : question["actions"]) own.push_back(action.get<float>());
    }
    const Answer answer = Post("/v1/systemone", row["body"].dump());
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::vector<Request> requests = engine_.last_group();
    ASSERT_EQ(requests.size(), row["questions"].size());
    size_t index = 0;
    for (const auto& [name, question] : row["questions"].items()) {
      const Request& request = requests[index++];
      EXPECT_EQ(request.prompt, question["ids"].get<std::vector<TokenId>>()) << name;
      const auto& decide = std::get<DecideSpec>(request.output);
      EXPECT_EQ(decide.markers, question["markers"].get<std::vector<int32_t>>()) << name;
      const Json bounds = question.value("option_bounds", Json::array());
      EXPECT_EQ(decide.option_bounds, bounds.get<std::vector<int32_t>>()) << name;
    }
    Json json = answer.json();
    EXPECT_EQ(json["model"], "laya");
    json.erase("model");
    EXPECT_EQ(json, row["answer"]) << json.dump() << "\n" << row["answer"].dump();
  }
}

TEST_F(LayaSequenceTest, TokensMarkersAndAnswersAreThoseOfThePackage) {
  StartLaya();
  ExpectPackage(kDir);
}

TEST_F(LayaSequenceTest, OptionsSideBySideAreThoseOfThePackage) {
  StartLaya(UserSpecialTokens::kDefault, true);
  ExpectPackage(std::string(kDir) + "-parallel");
}

TEST_F(LayaSequenceTest, SpecialTokensOfUsersAreTokens) {
  StartLaya();
  EXPECT_EQ(NumSeparators(), 4);
}

TEST_F(LayaSequenceTest, SpecialTokensOfUsersAreTextIfTheServerSaysSo) {
  StartLaya(UserSpecialTokens::kPlain);
  EXPECT_EQ(NumSeparators(), 3);
}

}  // namespace
}  // namespace skein::testing
