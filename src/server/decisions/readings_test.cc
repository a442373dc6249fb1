// Tests readings through /v1/decisions, /v1/systemone and /rerank, over the fake engine.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "testing/decision_server.h"

namespace skein::testing {
namespace {

constexpr char kMood[] = R"([{"type": "choice", "instructions": "What is the mood of it?",
                             "choices": [{"value": "sad"}, {"value": "glad"}]}])";

class ReadingsTest : public DecisionServerTest {
 protected:
  // Starts a model whose options are single words. `logits` are looked up by the prompt and the
  // word.
  void StartWords(std::map<std::string, float> logits) {
    for (const char* word : {" sad", " Sad", " glad", " very", " low", " high"}) {
      all_words_.push_back(word);
    }
    words_ = WordTokenizer(all_words_);
    StartModel();
    engine_.set_reader([this, logits = std::move(logits)](const Request& request) {
      ReadValues read;
      const std::string prompt = words_.Decode(request.prompt, false);
      for (const TokenId token : std::get_if<LabelSpec>(&request.output)->tokens) {
        const std::string text(words_.IdToToken(token));
        auto found = logits.find(prompt.substr(0, prompt.find('\n')) + "|" + text);
        if (found == logits.end()) found = logits.find(text);
        read.values.push_back(found == logits.end() ? -4 : found->second);
      }
      read.log_sum_exp = 3;
      return read;
    });
  }
  Json Decide(const std::string& questions, const std::string& more) {
    const Answer answer = Post(
        "/v1/decisions", R"({"input": "It rains.", "questions": )" + questions + ", " + more + "}");
    return answer.json();
  }

  std::vector<std::string> all_words_ = DecisionWords();
};

TEST_F(ReadingsTest, WordsAddUpTheSpellingsOfAnOption) {
  StartWords({{" sad", 1}, {" Sad", 0}, {" glad", 0.5}});
  const Json json = Decide(kMood, R"("reading": "words", "prompt": "cue")");
  const double sad = std::exp(1) + 1, glad = std::exp(0.5);
  // Spellings that the tokenizer has no single token for are left out.
  EXPECT_EQ(PromptText(0), "Text: It rains.\nMood:");
  EXPECT_EQ(engine_.last_group().size(), 1u);
  const Json& answer = json["answers"][0];
  EXPECT_EQ(answer["choice"], "sad");
  EXPECT_NEAR(answer["probabilities"][0]["probability"].get<double>(), sad / (sad + glad), 1e-6);
  EXPECT_NEAR(answer["diagnostics"]["label_mass"].get<double>(), (sad + glad) / std::exp(3), 1e-6);
  EXPECT_EQ(answer["diagnostics"]["reading"], "words");
  EXPECT_EQ(answer["diagnostics"]["prompt"], "cue");
  EXPECT_FALSE(answer["diagnostics"].contains("warning"));
  // Only an option's own spelling counts if the request asks for that.
  const Json exact = Decide(kMood, R"("reading": "words", "prompt": "cue", "spellings": "exact")");
  EXPECT_NEAR(exact["answers"][0]["probabilities"][0]["probability"].get<double>(),
              1 / (1 + std::exp(-0.5)), 1e-6);
}

TEST_F(ReadingsTest, SmallMassIsToldWithTheAnswer) {
  StartWords({{" sad", -1}, {" Sad", -9}, {" glad", -2}});
  const Json json = Decide(kMood, R"("reading": "words")");
  EXPECT_TRUE(json["answers"][0]["diagnostics"]["warning"].is_string());
  const Json quiet = Decide(kMood, R"("reading": "words", "diagnostics": false)");
  EXPECT_FALSE(quiet["answers"][0].contains("diagnostics"));
}

TEST_F(ReadingsTest, CalibrationTakesTheBaselineOffAndKeepsIt) {
  // On inputs without content, the model prefers "sad" to "glad" by e^2 : 1.
  StartWords({{" sad", 2}, {" Sad", -60}, {" glad", 0}, {"Text: It rains.| glad", 1}});
  const std::string calibrated = R"("reading": "words+calibrated", "prompt": "cue")";
  const Json first = Decide(kMood, calibrated);
  EXPECT_EQ(engine_.last_group().size(), 4u);  // the input and three inputs without content
  EXPECT_EQ(PromptText(1), "Text: N/A\nMood:");
  EXPECT_EQ(PromptText(2), "Text: \nMood:");
  const double glad = first["answers"][0]["probabilities"][1]["probability"];
  EXPECT_NEAR(glad, 1 / (1 + std::exp(-1)), 1e-6);
  // The baseline is in the cache now. The answer has the same bits.
  const Json second = Decide(kMood, calibrated);
  EXPECT_EQ(engine_.last_group().size(), 1u);
  EXPECT_EQ(second["answers"][0]["probabilities"].dump(),
            first["answers"][0]["probabilities"].dump());
  EXPECT_EQ(second["usage"]["input_tokens"], first["usage"]["input_tokens"]);
  // A request with another salt does not find the baseline.
  Decide(kMood, calibrated + R"(, "cache_salt": "tenant")");
  EXPECT_EQ(engine_.last_group().size(), 4u);
}

TEST_F(ReadingsTest, PermutedAnswersDoNotDependOnTheOrderOfTheOptions) {
  StartModel();
  engine_.set_reader([](const Request& request) {
    // A model that prefers the first letter, whatever option it stands for.
    ReadValues read;
    const auto& tokens = std::get_if<LabelSpec>(&request.output)->tokens;
    for (size_t i = 0; i < tokens.size(); ++i) read.values.push_back(i == 0 ? 2.0f : 0.0f);
    read.values.back() += static_cast<float>(request.prompt.back() % 3);
    read.log_sum_exp = 3;
    return read;
  });
  const auto ask = [&](const char* first, const char* second, const char* third) {
    const std::string questions =
        std::string(R"([{"type": "choice", "instructions": "?", "choices": [{"value": ")") + first +
        R"("}, {"value": ")" + second + R"("}, {"value": ")" + third + R"("}]}])";
    const Json json = Decide(questions, R"("reading": "permuted")");
    EXPECT_EQ(engine_.last_group().size(), 3u);
    std::map<std::string, std::string> probabilities;
    for (const Json& option : json["answers"][0]["probabilities"]) {
      probabilities[option["value"]] = option["probability"].dump();
    }
    return probabilities;
  };
  const auto answer = ask("a", "b", "c");
  EXPECT_EQ(answer.size(), 3u);
  EXPECT_EQ(answer, ask("c", "a", "b"));
  EXPECT_EQ(answer, ask("b", "a", "c"));
}

TEST_F(ReadingsTest, PermutedAnswersDoNotDependOnTheOrderOfTheExamples) {
  // A model that repeats the answer of the last example.
  StartWords({});
  engine_.set_reader([this](const Request& request) {
    const std::string prompt = words_.Decode(request.prompt, false);
    const bool glad_is_last = prompt.rfind(" glad") > prompt.rfind(" sad");
    ReadValues read;
    for (const TokenId token : std::get_if<LabelSpec>(&request.output)->tokens) {
      const bool glad = words_.IdToToken(token) == " glad";
      read.values.push_back(glad == glad_is_last ? 2.0f : 0.0f);
    }
    read.log_sum_exp = 3;
    return read;
  });
  const auto ask = [&](const std::string& examples) {
    const Json json =
        Decide(kMood, R"("reading": "words+permuted", "prompt": "cue", "spellings": "exact",
                         "examples": [)" +
                          examples + "]");
    EXPECT_EQ(engine_.last_group().size(), 4u);  // two orders of options times two of examples
    return json["answers"][0]["probabilities"].dump();
  };
  const std::string sun = R"({"input": "Sun!", "answers": ["glad"]})";
  const std::string fog = R"({"input": "Fog.", "answers": ["sad"]})";
  const std::string answer = ask(sun + ", " + fog);
  EXPECT_EQ(answer, ask(fog + ", " + sun));
  EXPECT_NEAR(Json::parse(answer)[0]["probability"].get<double>(), 0.5, 1e-9);
}

TEST_F(ReadingsTest, AnOffsetOfTheProfileMovesPredicates) {
  StartWords({{" yes", 0}, {" no", 2}});
  const std::string predicate = R"([{"type": "predicate", "instructions": "Is it wet?"}])";
  const std::string method = R"("reading": "letters", "prompt": "question")";
  const double plain = Decide(predicate, method)["answers"][0]["probability"];
  DecisionMethod profile{Reading::kLetters, PromptForm::kQuestion};
  profile.temperature = 2;
  profile.offset = 1.5;
  StartModel([&](ModelEntry* model) { model->traits.decisions.predicate = profile; });
  const Json json = Decide(predicate, method);
  const double log_odds = std::log(plain / (1 - plain));
  EXPECT_NEAR(json["answers"][0]["probability"].get<double>(),
              1 / (1 + std::exp(-(log_odds + 1.5) / 2)), 1e-9);
  EXPECT_EQ(json["answers"][0]["diagnostics"]["offset"], 1.5);
  // A temperature in the request replaces the profile's temperature and offset.
  EXPECT_NEAR(Decide(predicate, method + R"(, "temperature": 1)")["answers"][0]["probability"]
                  .get<double>(),
              plain, 1e-9);
}

TEST_F(ReadingsTest, ExamplesStandBeforeTheInput) {
  StartWords({});
  const std::string examples = R"(, "examples": [{"input": "Sun!", "answers": ["glad"]},
                                                 {"input": "Fog.", "answers": ["sad"]}])";
  Decide(kMood, R"("reading": "words", "prompt": "cue")" + examples);
  EXPECT_EQ(PromptText(0),
            "Text: Sun!\nMood: glad\n\nText: Fog.\nMood: sad\n\nText: It rains.\nMood:");
  Decide(kMood, R"("reading": "words", "prompt": "question")" + examples);
  EXPECT_EQ(PromptText(0).substr(0, 89),
            "Text: Sun!\nQuestion: What is the mood of it?\nOptions: sad; glad\nAnswer: glad\n\n"
            "Text: Fog.\n");
  const auto refused = [&](const std::string& text, const std::string& param) {
    const Json error = Decide(kMood, R"("reading": "words", "prompt": "cue", "examples": )" + text);
    EXPECT_EQ(error["error"]["param"], param) << error.dump();
  };
  refused(R"([{"input": "x", "answers": ["mad"]}])", "examples[0].answers[0]");
  refused(R"([{"input": "x", "answers": []}])", "examples[0].answers");
  refused(R"([{"answers": ["sad"]}])", "examples[0].input");
  refused(R"("sad")", "examples");
}

TEST_F(ReadingsTest, SystemOneTakesTheSameFields) {
  StartWords({{" low", 1}, {" high", 1}});
  const Answer answer = Post("/v1/systemone", R"({
      "state": {"a": 1}, "reading": "words", "prompt": "question",
      "questions": {"level": {"type": "score", "instructions": "How much?",
                              "criteria": ["low", "high"]}},
      "examples": [{"state": "none", "answers": {"level": 0}}]})");
  const Json json = answer.json();
  EXPECT_EQ(PromptText(0),
            "Text: none\nQuestion: How much?\nOptions: low; high\nAnswer: low\n\n"
            "Text: {\"a\":1}\nQuestion: How much?\nOptions: low; high\nAnswer:");
  EXPECT_NEAR(json["answers"]["level"]["score"].get<double>(), 0.5, 1e-9);
}

TEST_F(ReadingsTest, WrongFieldsAreNamed) {
  StartWords({});
  const auto param = [&](const std::string& more) {
    return Decide(kMood, more)["error"]["param"].get<std::string>();
  };
  EXPECT_EQ(param(R"("reading": "runes")"), "reading");
  EXPECT_EQ(param(R"("reading": "words+shouted")"), "reading");
  EXPECT_EQ(param(R"("reading": "likelihood")"), "reading");
  EXPECT_EQ(param(R"("reading": "similarity")"), "reading");
  EXPECT_EQ(param(R"("prompt": "shout")"), "prompt");
  EXPECT_EQ(param(R"("spellings": "some")"), "spellings");
  const std::string blank = R"([{"type": "choice", "instructions": "?",
                                 "choices": [{"value": "a"}, {"value": " \u00a0"}]}])";
  EXPECT_EQ(Decide(blank, R"("reading": "words")")["error"]["param"], "questions[0]");
}

TEST_F(ReadingsTest, RanksByTheLikelihoodOfTheQuery) {
  StartWords({});
  const Answer answer = Post("/rerank", R"({"query": "ab", "documents": ["x", "yz"],
                                            "reading": "likelihood"})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(engine_.last_group().size(), 3u);  // one of the prompts has no document
  EXPECT_EQ(PromptText(1), "Document: yz\nQuery: a");
  EXPECT_EQ(PromptText(2), "Document: \nQuery: a");
  EXPECT_EQ(Labels(1), std::vector<TokenId>{'b'});
  // The tokens behind "Query:", except the last one, whose probability is read as a label's.
  EXPECT_EQ(engine_.last_group()[1].prompt_logprobs->start,
            static_cast<int32_t>(std::string("Document: yz\nQuery:").size()));
  EXPECT_EQ(Post("/rerank", R"({"query": "a", "documents": ["x"], "reading": "permuted"})")
                .json()["error"]["param"],
            "reading");
}

}  // namespace
}  // namespace skein::testing
