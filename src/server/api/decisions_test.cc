#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

class DecisionsTest : public DecisionServerTest {
 protected:
  Answer Decide(const std::string& questions, const std::string& more = "") {
    return Post("/v1/decisions", R"({"model": "fake", "input": "The sky is blue.", "questions": )" +
                                     questions + more + "}");
  }
  // Expects a 400 whose error names `param` and contains `part`.
  void ExpectRefused(const Answer& answer, const std::string& param, const std::string& part) {
    EXPECT_EQ(answer.status, 400) << answer.body;
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["param"], param) << answer.body;
    EXPECT_NE(error["message"].get<std::string>().find(part), std::string::npos) << answer.body;
  }
};

constexpr char kThree[] = R"([
  {"type": "predicate", "instructions": "It rains.", "name": "rain"},
  {"type": "choice", "instructions": "Colour?", "choices": [
    {"value": "red"}, {"value": "blue", "description": "like the sea"}, {"value": true},
    {"value": "true"}]},
  {"type": "score", "instructions": "How bright?", "levels": [
    {"label": "dark"}, {"label": "bright", "description": "like noon"}]}])";

TEST_F(DecisionsTest, PromptsAreAsDocumented) {
  StartModel();
  ASSERT_EQ(Decide(kThree).status, 200);
  const std::string head = "user: Text:\nThe sky is blue.\n\n";
  EXPECT_EQ(PromptText(0), head + "Question: It rains.\nAnswer with yes or no only.\nassistant: ");
  EXPECT_EQ(PromptText(1), head +
                               "Question: Colour?\nA. red\nB. blue: like the sea\nC. true\n"
                               "D. \"true\"\nAnswer with one letter only.\nassistant: ");
  EXPECT_EQ(PromptText(2), head +
                               "Question: How bright?\n0. dark\n1. bright: like noon\n"
                               "Answer with one digit only.\nassistant: ");
  EXPECT_EQ(Labels(0), (std::vector<TokenId>{Word("yes"), Word("no")}));
  EXPECT_EQ(Labels(1), (std::vector<TokenId>{'A', 'B', 'C', 'D'}));
  EXPECT_EQ(Labels(2), (std::vector<TokenId>{'0', '1'}));
  // The prompts share the text up to "Question: ".
  const auto shared = static_cast<int32_t>((head + "Question: ").size());
  for (const Request& request : engine_.last_group()) {
    EXPECT_EQ(request.group.parent_prefix_len, shared);
  }
}

TEST_F(DecisionsTest, WholeAnswer) {
  StartModel();
  engine_.set_reader([](const Request& request) {
    const size_t n = std::get_if<LabelSpec>(&request.output)->tokens.size();
    ReadValues read;
    // The softmax of these logits has the ratios 1 : 2 : ... : n.
    for (size_t i = 0; i < n; ++i) read.values.push_back(std::log(static_cast<float>(i + 1)));
    read.log_sum_exp = std::log(20.0f);
    return read;
  });
  const Answer answer = Decide(kThree, R"(, "diagnostics": true)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  EXPECT_EQ(json["model"], "fake");
  ASSERT_EQ(json["answers"].size(), 3u);
  const Json& rain = json["answers"][0];
  EXPECT_EQ(rain["type"], "predicate");
  EXPECT_EQ(rain["name"], "rain");
  EXPECT_NEAR(rain["probability"].get<double>(), 1.0 / 3, 1e-7);
  EXPECT_NEAR(rain["diagnostics"]["label_mass"].get<double>(), 3.0 / 20, 1e-7);
  const Json& colour = json["answers"][1];
  EXPECT_TRUE(colour["name"].is_null());
  EXPECT_EQ(colour["choice"], "true");
  EXPECT_TRUE(colour["choice"].is_string());
  EXPECT_NEAR(colour["confidence"].get<double>(), (4 * 0.4 - 1) / 3, 1e-7);
  EXPECT_EQ(colour["probabilities"][2]["value"], true);
  EXPECT_NEAR(colour["probabilities"][2]["probability"].get<double>(), 0.3, 1e-7);
  const Json& bright = json["answers"][2];
  EXPECT_NEAR(bright["score"].get<double>(), 2.0 / 3, 1e-7);
  EXPECT_NEAR(bright["confidence"].get<double>(), 1 - (1.0 / 3) / 0.5, 1e-7);
  EXPECT_EQ(bright["probabilities"][1]["value"], 1);
  EXPECT_EQ(bright["probabilities"][1]["label"], "bright");
  // The tokens of three prompts: their common head counts once. The fake engine reports that 2
  // tokens of each prompt were cached.
  int64_t tokens = engine_.last_group()[0].group.parent_prefix_len;
  for (const Request& request : engine_.last_group()) {
    tokens += static_cast<int64_t>(request.prompt.size()) - request.group.parent_prefix_len;
  }
  EXPECT_EQ(json["usage"]["input_tokens"], tokens);
  EXPECT_EQ(json["usage"]["input_tokens_details"]["cached_tokens"], 2);
  EXPECT_EQ(json["usage"]["output_tokens"], 0);
  EXPECT_EQ(json["usage"]["total_tokens"], tokens);
}

TEST_F(DecisionsTest, TemperatureOfModelAndRequest) {
  StartModel([](ModelEntry* entry) { entry->traits.decisions.predicate.temperature = 2; });
  const std::string question = R"([{"type": "predicate", "instructions": "x"}])";
  const auto probability = [&](const std::string& more) {
    return Decide(question, more).json()["answers"][0]["probability"].get<double>();
  };
  // The fake's logits are 0 and -1.
  EXPECT_DOUBLE_EQ(probability(""), 1 / (1 + std::exp(-0.5)));
  EXPECT_DOUBLE_EQ(probability(R"(, "temperature": 1)"), 1 / (1 + std::exp(-1.0)));
  for (const char* wrong : {"0", "-1", "\"NaN\"", "101"}) {
    ExpectRefused(Decide(question, std::string(", \"temperature\": ") + wrong), "temperature",
                  "number in (0, 100]");
  }
  EXPECT_EQ(Decide(question, R"(, "temperature": NaN)").status, 400);
}

TEST_F(DecisionsTest, ManyChoicesGetCodes) {
  StartModel();
  const auto choices = [&](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      list += (i > 0 ? ", " : "") + std::string(R"({"value": "v)") + std::to_string(i) + "\"}";
    }
    return Decide(R"([{"type": "choice", "instructions": "x", "choices": [)" + list + "]}]");
  };
  const Answer answer = choices(255);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::vector<TokenId> labels = Labels(0);
  ASSERT_EQ(labels.size(), 255u);
  EXPECT_EQ(labels[25], 'Z');
  EXPECT_EQ(labels[26], Word("AA"));
  EXPECT_NE(PromptText(0).find("\nAB. v27\n"), std::string::npos);
  EXPECT_NE(PromptText(0).find("Answer with one label only."), std::string::npos);
  EXPECT_EQ(answer.json()["answers"][0]["choice"], "v0");
  ExpectRefused(choices(256), "questions[0].choices", "2 to 255");
  ExpectRefused(choices(1), "questions[0].choices", "2 to 255");
}

TEST_F(DecisionsTest, LabelsThatAreNoSingleTokens) {
  ByteTokenizer bytes;
  StartModel([&](ModelEntry* entry) { entry->tokenizer = &bytes; });
  ExpectRefused(Decide(R"([{"type": "predicate", "instructions": "x"}])"), "questions[0]",
                "the label \"yes\", which is not a single token");
  std::string choices;
  for (int i = 0; i < 27; ++i) {
    choices += (i > 0 ? ", " : "") + std::string(R"({"value": "v)") + std::to_string(i) + "\"}";
  }
  ExpectRefused(
      Decide(R"([{"type": "choice", "instructions": "x", "choices": [)" + choices + "]}]"),
      "questions[0]", "single tokens for 26 labels only");
}

// A tokenizer that spells "no" with the tokens of "yes".
class AgreeingTokenizer final : public WordTokenizer {
 public:
  using WordTokenizer::WordTokenizer;

  Status Encode(std::string_view text, bool special, std::vector<TokenId>* ids) const override {
    SKEIN_RETURN_IF_ERROR(WordTokenizer::Encode(text, special, ids));
    std::replace(ids->begin(), ids->end(), *TokenToId("no"), *TokenToId("yes"));
    return Status::Ok();
  }
};

TEST_F(DecisionsTest, LabelsThatCollide) {
  AgreeingTokenizer agreeing(DecisionWords());
  StartModel([&](ModelEntry* entry) { entry->tokenizer = &agreeing; });
  ExpectRefused(
      Decide(R"([{"type": "predicate", "instructions": "x"}])"), "questions[0]",
      "the labels \"yes\" and \"no\", which are the same token of this model: use another "
      "model or another question type");
  // Levels that share a digit are told apart by their positions.
  StartModel();
  ASSERT_EQ(Decide(R"([{"type": "score", "instructions": "Stars?", "levels": [
    {"label": "3"}, {"label": "3"}]}])")
                .status,
            200);
  EXPECT_EQ(Labels(0), (std::vector<TokenId>{'0', '1'}));
}

TEST_F(DecisionsTest, LevelsThatAreDigitsAreTheirOwnLabels) {
  StartModel();
  ASSERT_EQ(Decide(R"([{"type": "score", "instructions": "Stars?", "levels": [
    {"label": "1", "description": "bad"}, {"label": "3"}, {"label": "5"}]}])")
                .status,
            200);
  EXPECT_EQ(Labels(0), (std::vector<TokenId>{'1', '3', '5'}));
  EXPECT_NE(PromptText(0).find("\n1. bad\n3.\n5.\nAnswer"), std::string::npos) << PromptText(0);
  // If one label is not a digit, the positions are the labels, and every level is named.
  ASSERT_EQ(Decide(R"([{"type": "score", "instructions": "Rooms?", "levels": [
    {"label": "0"}, {"label": "1"}, {"label": "2+"}]}])")
                .status,
            200);
  EXPECT_NE(PromptText(0).find("\n0. 0\n1. 1\n2. 2+\nAnswer"), std::string::npos) << PromptText(0);
}

TEST_F(DecisionsTest, MoreQuestionsThanTheQueueTakes) {
  StartModel();
  engine_.set_queue_limit(1);
  ExpectRefused(Decide(R"([{"type": "predicate", "instructions": "x"},
                           {"type": "predicate", "instructions": "y"}])"),
                "questions", "1");
}

TEST_F(DecisionsTest, InputOfMessages) {
  StartModel();
  const auto post = [&](const std::string& input) {
    return Post("/v1/decisions", R"({"questions": [{"type": "predicate", "instructions":
      [{"type": "input_text", "text": "It rains."}]}], "input": )" +
                                     input + "}");
  };
  ASSERT_EQ(post(R"([{"role": "user", "content": [{"type": "input_text", "text": "a"},
                      {"type": "input_json", "data": {"z": 1, "a": [true]}}]},
                     {"type": "message", "role": "user", "content": "b"}])")
                .status,
            200);
  EXPECT_TRUE(PromptText(0).starts_with("user: Text:\na\n{\"z\":1,\"a\":[true]}\n\nb\n\n"))
      << PromptText(0);
  ExpectRefused(post(R"([{"role": "user", "content": [{"type": "input_image"}]}])"),
                "input[0].content[0]", "images are not");
  ExpectRefused(post(R"([{"role": "tool", "content": "x"}])"), "input[0].role", "\"user\"");
  ExpectRefused(post("7"), "input", "string or an array");
  ExpectRefused(post("\" \""), "input", "must not be empty");
  ExpectRefused(post("[]"), "input", "at least one message");
  ExpectRefused(post("null"), "input", "string or an array");
}

TEST_F(DecisionsTest, WrongQuestions) {
  StartModel();
  ExpectRefused(Decide("[]"), "questions", "1 to 200");
  ExpectRefused(Decide("null"), "questions", "1 to 200");
  std::string many = "[";
  for (int i = 0; i < 201; ++i) {
    many += (i > 0 ? "," : "") + std::string(R"({"type": "predicate", "instructions": "x"})");
  }
  ExpectRefused(Decide(many + "]"), "questions", "1 to 200");
  ExpectRefused(Decide("[1]"), "questions[0]", "an object");
  ExpectRefused(Decide(R"([{"type": "essay", "instructions": "x"}])"), "questions[0].type",
                "\"predicate\", \"choice\" or \"score\"");
  ExpectRefused(Decide(R"([{"type": "predicate"}])"), "questions[0].instructions", "string");
  ExpectRefused(Decide(R"([{"type": "predicate", "instructions": ""}])"),
                "questions[0].instructions", "must not be empty");
  ExpectRefused(Decide(R"([{"type": "predicate", "instructions": "x", "name": 3}])"),
                "questions[0].name", "a string");
  const auto choice = [&](const std::string& choices) {
    return Decide(R"([{"type": "choice", "instructions": "x", "choices": )" + choices + "}]");
  };
  ExpectRefused(choice(R"([{"value": "a"}, {"value": "b"}, {"value": "a"}])"),
                "questions[0].choices[2].value", "must differ from that of choices[0]");
  ExpectRefused(choice(R"([{"value": true}, {"value": true}])"), "questions[0].choices[1].value",
                "must differ");
  EXPECT_EQ(choice(R"([{"value": true}, {"value": "true"}])").status, 200);
  ExpectRefused(choice(R"([{"value": 1}, {"value": 2}])"), "questions[0].choices[0].value",
                "boolean");
  ExpectRefused(choice(R"([{"value": "a", "description": []}, {"value": "b"}])"),
                "questions[0].choices[0].description", "a string");
  const auto score = [&](const std::string& levels) {
    return Decide(R"([{"type": "score", "instructions": "x", "levels": )" + levels + "}]");
  };
  ExpectRefused(score(R"([{"label": "a"}])"), "questions[0].levels", "2 to 10");
  ExpectRefused(score(R"([{"label": "a"}, {}])"), "questions[0].levels[1].label", "string");
}

TEST_F(DecisionsTest, PromptsThatAreTooLong) {
  StartModel([](ModelEntry* entry) { entry->max_model_len = 100; });
  ExpectRefused(
      Decide(R"([{"type": "predicate", "instructions": ")" + std::string(80, 'x') + "\"}]"),
      "input", "takes at most 99");
}

TEST_F(DecisionsTest, ModelsWithoutTemplateOrOutputMatrix) {
  StartModel([](ModelEntry* entry) { entry->chat_template = nullptr; });
  // A label has a space before it only if both together are one token, which is not so here.
  ASSERT_EQ(Decide(R"([{"type": "predicate", "instructions": "It rains."}])").status, 200);
  EXPECT_EQ(PromptText(0),
            "Text:\nThe sky is blue.\n\nQuestion: It rains.\n"
            "Answer with yes or no only.\nAnswer:");
  StartModel([](ModelEntry* entry) { entry->traits.generates = false; });
  ExpectRefused(Decide(R"([{"type": "predicate", "instructions": "It rains."}])"), "model",
                "causal language model");
}

TEST_F(DecisionsTest, SchedulingFieldsReachAllReads) {
  StartModel();
  ASSERT_EQ(Decide(kThree, R"(, "slo_ttft_ms": 30, "priority": -2, "user": "ann",
                              "cache_salt": "s")")
                .status,
            200);
  for (const Request& request : engine_.last_group()) {
    EXPECT_EQ(request.slo_ttft_us, 30000);
    EXPECT_EQ(request.priority, -2);
    EXPECT_EQ(request.user, "ann");
    EXPECT_NE(request.cache_salt, 0u);
  }
  ExpectRefused(Decide(kThree, R"(, "slo_ttft_ms": 0)"), "slo_ttft_ms", "number");
}

TEST_F(DecisionsTest, AllReadsHaveTheModelsAdapter) {
  StartModel([](ModelEntry* entry) { entry->adapter_id = 2; });
  ASSERT_EQ(Decide(kThree).status, 200);
  ASSERT_FALSE(engine_.last_group().empty());
  for (const Request& request : engine_.last_group()) EXPECT_EQ(request.adapter_id, 2);
}

TEST_F(DecisionsTest, DisconnectCancelsAllReads) {
  StartModel();
  engine_.set_paused(true);
  {
    Client client(port_);
    client.SendRequest("POST", "/v1/decisions",
                       R"({"input": "x", "questions": )" + std::string(kThree) + "}");
    ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 3; }));
  }
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
  EXPECT_EQ(engine_.num_cancelled(), 3);
}

TEST_F(DecisionsTest, OneQuestionNamesItsHead) {
  StartModel();
  ASSERT_EQ(Decide(R"([{"type": "predicate", "instructions": "It rains."}])").status, 200);
  EXPECT_EQ(engine_.last_group()[0].group.parent_prefix_len,
            static_cast<int32_t>(std::string("user: Text:\nThe sky is blue.\n\n").size()));
}

}  // namespace
}  // namespace skein::testing
