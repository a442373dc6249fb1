#include <gtest/gtest.h>

#include <cmath>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

class ZeroShotTest : public DecisionServerTest {
 protected:
  // Starts a classification head. Its entailment score is the digit at the hypothesis' end, its
  // contradiction score is 1.
  void StartNli() {
    traits_.generates = false;
    traits_.classifies = traits_.encodes_pairs = true;
    traits_.class_labels = {"CONTRADICTION", "NEUTRAL", "ENTAILMENT"};
    engine_.set_reader([](const Request& request) {
      return ReadValues{{1, 5, static_cast<float>(request.prompt.back() - '0')}, 0};
    });
    Start();
  }

  Answer Ask(const std::string& parameters) {
    return Post("/", R"({"inputs": "A text.", "parameters": )" + parameters + "}");
  }
  void ExpectError(const std::string& parameters, const std::string& param,
                   const std::string& part) {
    const Answer answer = Ask(parameters);
    EXPECT_EQ(answer.status, 400) << answer.body;
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["param"], param) << answer.body;
    EXPECT_NE(error["message"].get<std::string>().find(part), std::string::npos) << answer.body;
  }
};

TEST_F(ZeroShotTest, AHeadReadsEachHypothesis) {
  StartNli();
  const Answer answer =
      Ask(R"({"candidate_labels": ["1", "3", "2"], "hypothesis_template": "It is {}"})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(tokenizer_.Decode(engine_.last_group().at(1).prompt, false), "A text.<eos>It is 3");
  const Json list = answer.json();
  ASSERT_EQ(list.size(), 3U);
  const double sum = std::exp(-2.0) + std::exp(-1.0) + 1;
  EXPECT_EQ(list[0]["label"], "3");
  EXPECT_DOUBLE_EQ(list[0]["score"].get<double>(), 1 / sum);
  EXPECT_EQ(list[1]["label"], "2");
  EXPECT_DOUBLE_EQ(list[1]["score"].get<double>(), std::exp(-1.0) / sum);
  const Json each = Ask(R"({"candidate_labels": ["1", "3"], "multi_label": true,
                            "hypothesis_template": "{}"})")
                        .json();
  EXPECT_EQ(each[0]["label"], "3");
  EXPECT_DOUBLE_EQ(each[0]["score"].get<double>(), 1 / (1 + std::exp(-2.0)));
  EXPECT_DOUBLE_EQ(each[1]["score"].get<double>(), 0.5);
  // A single label is not compared with others.
  EXPECT_DOUBLE_EQ(Ask(R"({"candidate_labels": ["1"], "hypothesis_template": "{}"})")
                       .json()[0]["score"]
                       .get<double>(),
                   0.5);
  ASSERT_EQ(Ask(R"({"candidate_labels": ["new"]})").status, 200);
  EXPECT_EQ(tokenizer_.Decode(engine_.last_group().at(0).prompt, false),
            "A text.<eos>This example is new.");
}

TEST_F(ZeroShotTest, AChatModelChooses) {
  StartModel();
  engine_.set_reader([](const Request& request) {
    ReadValues read;
    for (size_t i = 0; i < std::get_if<LabelSpec>(&request.output)->tokens.size(); ++i) {
      read.values.push_back(std::log(static_cast<float>(i + 1)));
    }
    return read;
  });
  const Answer answer = Ask(R"({"candidate_labels": ["sport", "art", "food"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(PromptText(0),
            "user: Text:\nA text.\n\nQuestion: Which label fits the text best?\nA. sport\nB. art\n"
            "C. food\nAnswer with one letter only.\nassistant: ");
  EXPECT_EQ(answer.json()[0]["label"], "food");
  EXPECT_NEAR(answer.json()[0]["score"].get<double>(), 0.5, 1e-6);
  EXPECT_EQ(answer.json()[2]["label"], "sport");
  ASSERT_EQ(Ask(R"({"candidate_labels": ["sport", "art"], "multi_label": true,
                    "hypothesis_template": "It is about {}."})")
                .status,
            200);
  ASSERT_EQ(engine_.last_group().size(), 2U);
  EXPECT_EQ(PromptText(1),
            "user: Text:\nA text.\n\nQuestion: Is this statement about the text true? It is about "
            "art.\nAnswer with yes or no only.\nassistant: ");
}

TEST_F(ZeroShotTest, ErrorsNameTheField) {
  StartNli();
  ExpectError(R"({"candidate_labels": []})", "parameters.candidate_labels", "1 to 200");
  ExpectError(R"({"candidate_labels": ["a", "a"]})", "parameters.candidate_labels", "differ");
  ExpectError(R"({"candidate_labels": ["a"], "hypothesis_template": "no place"})",
              "parameters.hypothesis_template", "{}");
  EXPECT_EQ(Post("/", R"({"inputs": ["a"], "parameters": {"candidate_labels": ["a"]}})").status,
            400);
}

TEST_F(ZeroShotTest, OtherClassifiersAreRefused) {
  traits_.generates = false;
  traits_.classifies = traits_.encodes_pairs = true;
  traits_.class_labels = {"no", "yes"};
  Start();
  ExpectError(R"({"candidate_labels": ["a", "b"]})", "model", "entailment");
}

}  // namespace
}  // namespace skein::testing
