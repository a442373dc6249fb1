#include <gtest/gtest.h>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

class SystemOneTest : public DecisionServerTest {
 protected:
  Answer Ask(const std::string& questions, const std::string& state = R"("It is hot.")",
             const std::string& more = "") {
    return Post("/v1/systemone", R"({"model": "jev-latest", "state": )" + state +
                                     R"(, "questions": )" + questions + more + "}");
  }
  void ExpectRefused(const Answer& answer, const std::string& param, const std::string& part) {
    EXPECT_EQ(answer.status, 400) << answer.body;
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["param"], param) << answer.body;
    EXPECT_NE(error["message"].get<std::string>().find(part), std::string::npos) << answer.body;
  }
};

TEST_F(SystemOneTest, WholeAnswer) {
  StartModel();
  const Answer answer = Ask(R"({
    "hot": {"type": "noul", "instructions": "Is it hot?", "criteria": {"true": "over 30 C"}},
    "what": {"type": "choice", "instructions": "What?", "criteria": {
      "sun": "shines", "rain": null}},
    "how": {"type": "score", "instructions": "How?", "criteria": ["cold", "warm", "hot"]}})",
                            R"({"t": 31, "a": [1, {"b": null}]})",
                            R"(, "instructions": "Be strict.", "diagnostics": true)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string head =
      "user: Be strict.\n\nText:\n{\"t\":31,\"a\":[1,{\"b\":null}]}\n\nQuestion: ";
  EXPECT_EQ(PromptText(0),
            head + "Is it hot?\nyes: over 30 C\nAnswer with yes or no only.\nassistant: ");
  EXPECT_EQ(PromptText(1),
            head + "What?\nA. sun: shines\nB. rain\nAnswer with one letter only.\nassistant: ");
  EXPECT_EQ(PromptText(2),
            head + "How?\n0. cold\n1. warm\n2. hot\nAnswer with one digit only.\nassistant: ");
  const Json json = answer.json();
  EXPECT_EQ(json["model"], "fake");
  // The fake's logits are 0, -1, -2.
  const Json& hot = json["answers"]["hot"];
  EXPECT_EQ(hot["type"], "noul");
  EXPECT_NEAR(hot["noul"].get<double>(), 0.7310585786, 1e-9);
  EXPECT_NEAR(hot["diagnostics"]["label_mass"].get<double>(), 0.1851223, 1e-6);
  const Json& what = json["answers"]["what"];
  EXPECT_EQ(what["choice"], "sun");
  EXPECT_NEAR(what["probabilities"]["rain"].get<double>(), 0.2689414213, 1e-9);
  EXPECT_NEAR(what["confidence"].get<double>(), 2 * 0.7310585786 - 1, 1e-9);
  const Json& how = json["answers"]["how"];
  EXPECT_EQ(how["legend"].dump(), R"({"0":"cold","1":"warm","2":"hot"})");
  EXPECT_NEAR(how["probabilities"]["2"].get<double>(), 0.0900305732, 1e-9);
  EXPECT_NEAR(how["score"].get<double>(), 0.2447284711 + 2 * 0.0900305732, 1e-9);
  EXPECT_EQ(json["usage"]["output_tokens"], 0);
  EXPECT_GT(json["usage"]["input_tokens"].get<int>(), 0);
}

// OpenRouter's clients post the same body, with further members, to routes of other names.
TEST_F(SystemOneTest, OtherRoutesTakeTheSameForm) {
  StartModel();
  const std::string body =
      R"({"model": "jev-latest", "state": {"t": 31}, "provider": {"order": ["x"]},
      "questions": {"hot": {"type": "noul", "instructions": "Is it hot?",
                            "criteria": {"yes": "over 30 C", "no": "below"}}}})";
  const Answer expected = Post("/v1/systemone", body);
  ASSERT_EQ(expected.status, 200) << expected.body;
  EXPECT_NE(PromptText(0).find("yes: over 30 C"), std::string::npos);
  for (const char* path : {"/v1/decisions", "/api/alpha/decisions"}) {
    const Answer answer = Post(path, body);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json()["answers"], expected.json()["answers"]);
  }
}

TEST_F(SystemOneTest, AnswersOfLittleConfidenceAreMarked) {
  StartModel();
  const std::string questions = R"({"hot": {"type": "noul", "instructions": "Is it hot?"},
      "what": {"type": "choice", "instructions": "What?", "criteria": ["a", "b", "c"]}})";
  const auto marks = [&](const std::string& min_confidence) {
    const Answer answer = Ask(questions, "\"x\"", ", \"min_confidence\": " + min_confidence);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["answers"];
  };
  // The fake's probabilities are 0.73 and 0.67.
  Json answers = marks("0.7");
  EXPECT_EQ(answers["hot"]["abstention"], "passed");
  EXPECT_FALSE(answers["hot"].contains("low_confidence"));
  EXPECT_EQ(answers["what"]["abstention"], "abstained");
  EXPECT_EQ(answers["what"]["low_confidence"], true);
  EXPECT_EQ(answers["what"]["abstention_threshold"], 0.7);
  answers = marks(R"({"choice:3-5": 0.5, "default": 0.9})");
  EXPECT_EQ(answers["hot"]["abstention"], "abstained");
  EXPECT_EQ(answers["what"]["abstention_threshold"], 0.5);
  EXPECT_EQ(marks("null")["hot"].contains("abstention"), false);
  const std::string good = R"({"a": {"type": "noul", "instructions": "x"}})";
  ExpectRefused(Ask(good, "\"x\"", R"(, "min_confidence": 2)"), "min_confidence", "0 to 1");
  ExpectRefused(Ask(good, "\"x\"", R"(, "min_confidence": {"noul:2": -1})"),
                "min_confidence.noul:2", "0 to 1");
}

TEST_F(SystemOneTest, PicturesAreRefused) {
  StartModel();
  const std::string good = R"({"a": {"type": "noul", "instructions": "x"}})";
  for (const char* field : {"images", "files", "videos", "content"}) {
    ExpectRefused(
        Ask(good, "\"x\"", std::string(", \"") + field + R"(": ["data:image/png;base64,AA"])"),
        field, "not supported");
    EXPECT_EQ(Ask(good, "\"x\"", std::string(", \"") + field + R"(": [])").status, 200);
  }
}

TEST_F(SystemOneTest, OneOptionIsCertain) {
  StartModel();
  const Json answers = Ask(R"({
    "c": {"type": "choice", "instructions": "What?", "criteria": {"sun": null}},
    "s": {"type": "score", "instructions": "How?", "criteria": ["cold"]}})")
                           .json()["answers"];
  EXPECT_EQ(answers["c"]["confidence"], 1.0);
  EXPECT_EQ(answers["c"]["probabilities"]["sun"], 1.0);
  EXPECT_EQ(answers["s"]["confidence"], 1.0);
  EXPECT_EQ(answers["s"]["score"], 0.0);
}

TEST_F(SystemOneTest, WrongFields) {
  StartModel();
  const std::string good = R"({"a": {"type": "noul", "instructions": "x"}})";
  ExpectRefused(Ask(good, "7"), "state", "a string, an object or an array");
  ExpectRefused(Ask(good, "\"\""), "state", "not empty");
  ExpectRefused(Ask(good, "null"), "state", "a string");
  ExpectRefused(Ask("{}"), "questions", "1 to 200");
  ExpectRefused(Ask("[]"), "questions", "object");
  ExpectRefused(Ask(good, "\"x\"", R"(, "instructions": 1)"), "instructions", "a string");
  const auto one = [&](const std::string& fields) {
    return Ask(R"({"q": {"instructions": "x", )" + fields + "}}");
  };
  ExpectRefused(one(R"("type": "x")"), "questions.q.type", "\"noul\"");
  ExpectRefused(Ask(R"({"q": {"type": "noul"}})"), "questions.q.instructions", "string");
  ExpectRefused(Ask(R"({"q": 1})"), "questions.q.type", "must be given");
  ExpectRefused(one(R"("type": "noul", "criteria": {"maybe": "x"})"), "questions.q.criteria",
                "true and false");
  ExpectRefused(one(R"("type": "noul", "criteria": {"true": 1})"), "questions.q.criteria.true",
                "string or null");
  ExpectRefused(one(R"("type": "choice", "criteria": {})"), "questions.q.criteria", "1 to 255");
  ExpectRefused(one(R"("type": "choice")"), "questions.q.criteria", "1 to 255");
  ExpectRefused(one(R"("type": "choice", "criteria": {"": null})"), "questions.q.criteria",
                "empty name");
  ExpectRefused(one(R"("type": "score", "criteria": [])"), "questions.q.criteria", "1 to 10");
  ExpectRefused(one(R"("type": "score", "criteria": [1])"), "questions.q.criteria[0]",
                "string or null");
  ExpectRefused(one(R"("type": "score", "criteria": ["","","","","","","","","","",""])"),
                "questions.q.criteria", "1 to 10");
  EXPECT_EQ(Post("/v1/systemone", R"({"model": "nobody", "state": "x"})").status, 404);
}

}  // namespace
}  // namespace skein::testing
