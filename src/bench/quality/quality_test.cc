#include "bench/quality/quality.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "bench/quality/quality_report.h"
#include "bench/quality/quality_summary.h"

namespace skein {
namespace {

constexpr char kItems[] =
    R"({"id": "c1", "task": "c", "input": "good", "answer": "yes", "question": {"type": "choice", )"
    R"("instructions": "?", "choices": [{"value": "yes"}, {"value": "no"}]}})"
    "\n"
    R"({"id": "c2", "task": "c", "input": "bad", "answer": "no", "question": {"type": "choice", )"
    R"("instructions": "?", "choices": [{"value": "yes"}, {"value": "no"}]}})"
    "\n"
    R"({"id": "c3", "task": "c", "input": "first", "answer": "yes", "question": {"type": )"
    R"("choice", "instructions": "?", "choices": [{"value": "yes"}, {"value": "no"}]}})"
    "\n"
    R"({"id": "c4", "task": "c", "input": "refuse", "answer": "yes", "question": {"type": )"
    R"("choice", "instructions": "?", "choices": [{"value": "yes"}, {"value": "no"}]}})"
    "\n"
    R"({"id": "p1", "task": "p", "input": "good", "answer": true, "question": )"
    R"({"type": "predicate", "instructions": "?"}})"
    "\n"
    R"({"id": "r1", "task": "r", "query": "q", "documents": ["a", "b", "c"], "answer": [2]})";

std::vector<QualityItem> Items() {
  Result<std::vector<QualityItem>> items = ParseQualityItems(kItems, "f");
  EXPECT_TRUE(items.ok()) << items.status().message();
  return std::move(items).value();
}

HttpResponse Answered(const Json& body) {
  HttpResponse response;
  response.body = DumpJson(body);
  return response;
}

// A model that can tell "good" from "bad", answers "first" with the first option and refuses
// "refuse". It waits for four requests and answers the last one first.
class FakeModel {
 public:
  ~FakeModel() { EXPECT_TRUE(waiting_.empty()); }

  QualityAsk ask() {
    return [this](const std::string& path, const std::string& body,
                  std::function<void(HttpResponse)> done) {
      const Json json = *ParseJson(body);
      bodies_.push_back(json);
      waiting_.emplace_back(path == "/rerank" ? Rank(json) : Decide(json), std::move(done));
      most_ = std::max(most_, waiting_.size());
      if (waiting_.size() < batch_) return;
      while (!waiting_.empty()) {
        const auto [response, answer] = std::move(waiting_.back());
        waiting_.pop_back();
        answer(response);
      }
    };
  }

  std::vector<Json> bodies_;
  size_t batch_ = 1;
  size_t most_ = 0;
  int status_ = 400;

 private:
  static HttpResponse Rank(const Json& body) {
    Json results = Json::array();
    for (size_t i = body["documents"].size(); i-- > 0;) {
      results.push_back({{"index", i}, {"relevance_score", 0.2 * static_cast<double>(i + 1)}});
    }
    return Answered({{"results", results}, {"usage", {{"prompt_tokens", 9}}}});
  }

  HttpResponse Decide(const Json& body) const {
    const std::string input = body["input"];
    if (input == "refuse") {
      HttpResponse response = Answered({{"error", {{"message", "too long"}}}});
      response.status = status_;
      return response;
    }
    const Json& question = body["questions"][0];
    Json answer = {{"diagnostics", {{"label_mass", 0.5}}}};
    if (question["type"] == "predicate") {
      answer["probability"] = input == "good" ? 0.9 : 0.1;
    } else {
      for (size_t i = 0; i < question["choices"].size(); ++i) {
        const bool yes = question["choices"][i]["value"] == "yes";
        const bool high = input == "first" ? i == 0 : yes == (input == "good");
        answer["probabilities"].push_back({{"probability", high ? 0.8 : 0.2}});
      }
    }
    return Answered({{"answers", Json::array({answer})}, {"usage", {{"input_tokens", 7}}}});
  }

  std::vector<std::pair<HttpResponse, std::function<void(HttpResponse)>>> waiting_;
};

QualityMethod Method(const std::string& name) {
  const auto filter = ParseMethodFilter(name);
  EXPECT_TRUE(filter.ok()) << filter.status().message();
  const auto all = QualityMethodsFor({}, true, QualityType::kChoice);
  const auto methods = Filtered(all, filter.value());
  EXPECT_EQ(methods.size(), 1u) << name;
  return methods.empty() ? QualityMethod{} : methods[0];
}

QualityRun RunOf(FakeModel* model, QualityType type, const QualityMethod& method,
                 const QualityLoad& load = {}) {
  VirtualClock clock;
  Result<QualityRun> run = RunQuality(Items(), type, method, load, clock, model->ask());
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? std::move(run).value() : QualityRun{};
}

TEST(BenchQualityTest, AnswersStandInTheItemsOrder) {
  FakeModel model;
  const QualityRun run = RunOf(&model, QualityType::kChoice, Method("words+calibrated/cue"));
  ASSERT_EQ(run.answers.size(), 4u);
  EXPECT_EQ(run.answers[0].probabilities, (std::vector<double>{0.8, 0.2}));
  EXPECT_EQ(run.answers[1].probabilities, (std::vector<double>{0.2, 0.8}));
  EXPECT_EQ(run.answers[0].flipped, false);
  EXPECT_EQ(run.answers[2].flipped, true);
  EXPECT_EQ(run.answers[3].refusal, "too long");
  EXPECT_FALSE(run.answers[3].flipped.has_value());
  EXPECT_EQ(run.answers[0].label_mass, 0.5);
  EXPECT_EQ(run.answers[0].input_tokens, 7);
  ASSERT_EQ(model.bodies_.size(), 9u);  // one for the warm-up, then each item twice
  EXPECT_EQ(model.bodies_[1]["reading"], "words+calibrated");
  EXPECT_EQ(model.bodies_[1]["prompt"], "cue");
  EXPECT_EQ(model.bodies_[1]["temperature"], 1);
  EXPECT_EQ(model.bodies_[5]["questions"][0]["choices"][0]["value"], "no");
}

TEST(BenchQualityTest, AnOrderOfAnswersDoesNotMatter) {
  FakeModel model;
  std::vector<HttpResponse> order;
  VirtualClock clock;
  const QualityMethod method = Method("letters/chat");
  const QualityAsk ask = model.ask();
  int count = 0;
  const QualityAsk later = [&](const std::string& path, std::string body,
                               std::function<void(HttpResponse)> done) {
    model.batch_ = count++ == 0 ? 1 : 4;
    ask(path, std::move(body), std::move(done));
  };
  const auto run = RunQuality(Items(), QualityType::kChoice, method, {}, clock, later);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(model.most_, 4u);
  EXPECT_EQ(run.value().answers[1].probabilities, (std::vector<double>{0.2, 0.8}));
  EXPECT_EQ(run.value().answers[3].refusal, "too long");
}

TEST(BenchQualityTest, OtherErrorsEndTheRun) {
  FakeModel model;
  VirtualClock clock;
  for (const int status : {429, 500}) {
    model.status_ = status;
    EXPECT_FALSE(
        RunQuality(Items(), QualityType::kChoice, Method("letters/chat"), {}, clock, model.ask())
            .ok());
  }
}

TEST(BenchQualityTest, SummariesByHand) {
  FakeModel model;
  const std::vector<QualityItem> items = Items();
  const QualityRun run = RunOf(&model, QualityType::kChoice, Method("letters/chat"));
  const QualitySummary summary = Summarize(items, run);
  EXPECT_EQ(summary.figures.items, 3);
  EXPECT_EQ(summary.figures.refused, 1);
  EXPECT_DOUBLE_EQ(summary.figures.accuracy, 1);
  EXPECT_DOUBLE_EQ(summary.figures.chance_accuracy, 0.5);
  EXPECT_DOUBLE_EQ(summary.figures.auc.value(), 1);
  EXPECT_NEAR(summary.figures.brier.value(), 0.08, 1e-12);
  EXPECT_NEAR(summary.figures.calibration_error.value(), 0.2, 1e-12);
  EXPECT_NEAR(summary.figures.flips.value(), 1.0 / 3, 1e-12);
  EXPECT_NEAR(summary.calibration.temperature, kFitTemperatureMin, 1e-3);  // all answers are right
  EXPECT_LT(summary.figures.calibration_error_calibrated.value(), 1e-6);

  const QualityRun ranks = RunOf(&model, QualityType::kRelevance, QualityMethod{});
  const QualityFigures ranked = Summarize(items, ranks).figures;
  EXPECT_DOUBLE_EQ(ranked.mrr.value(), 1);
  EXPECT_NEAR(ranked.chance_mrr.value(), (1 + 0.5 + 1.0 / 3) / 3, 1e-12);
  EXPECT_DOUBLE_EQ(ranked.auc.value(), 1);
  EXPECT_EQ(ranked.input_tokens, 9);
}

// A run with one choice, in which the right answer got `probability`.
QualityRun Chose(const QualityMethod& method, double probability, int64_t tokens) {
  QualityRun run{QualityType::kChoice, method, {0}, {{}}, 0};
  run.answers[0].probabilities = {probability, 1 - probability};
  run.answers[0].input_tokens = tokens;
  return run;
}

TEST(BenchQualityTest, ChoosesAccuracyThenCrossEntropyThenTokens) {
  const std::vector<QualityItem> items = Items();
  std::vector<QualityRun> runs = {
      Chose(Method("letters/chat"), 0.4, 1), Chose(Method("letters/question"), 0.8, 9),
      Chose(Method("words/question"), 0.9, 9), Chose(Method("words/cue"), 0.9, 5)};
  std::vector<QualitySummary> summaries;
  for (const QualityRun& run : runs) summaries.push_back(Summarize(items, run));
  EXPECT_EQ(ChooseBest(runs, summaries, QualityType::kChoice), 3u);
  EXPECT_FALSE(ChooseBest(runs, summaries, QualityType::kScore).has_value());
  // A method with more refusals is never chosen.
  summaries[3].figures.refused = 1;
  EXPECT_EQ(ChooseBest(runs, summaries, QualityType::kChoice), 2u);
  const DecisionProfile profile = WithMethod({}, runs[2], {3, 0});
  EXPECT_EQ(profile.choice.reading, Reading::kWords);
  EXPECT_EQ(profile.choice.temperature, 3);
  EXPECT_EQ(profile.score, DecisionMethod{});
  EXPECT_EQ(WithMethod({}, Chose({{}, true}, 0.9, 1), {3, 0}), DecisionProfile{});
}

TEST(BenchQualityTest, MethodsFitTheModel) {
  const ModelTraits causal;
  EXPECT_EQ(QualityMethodsFor(causal, true, QualityType::kChoice).size(), 18u);
  EXPECT_EQ(QualityMethodsFor(causal, false, QualityType::kChoice).size(), 11u);
  EXPECT_EQ(QualityMethodsFor(causal, true, QualityType::kPredicate).size(), 10u);
  EXPECT_EQ(QualityMethodsFor(causal, true, QualityType::kRelevance).size(), 5u);
  ModelTraits embedder;
  embedder.generates = false;
  embedder.embeds = true;
  EXPECT_EQ(QualityMethodsFor(embedder, false, QualityType::kScore).size(), 3u);
  const auto own = QualityMethodsFor(embedder, false, QualityType::kRelevance);
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].name(), "own");
  EXPECT_FALSE(own[0].probabilities);
  EXPECT_FALSE(QualityBody(Items(), 5, own[0], 0).contains("reading"));
  EXPECT_FALSE(ParseMethodFilter("worse").ok());
  EXPECT_FALSE(ParseMethodFilter("words/loud").ok());
  EXPECT_EQ(Method("words+permuted+calibrated/cue").name(), "words+calibrated+permuted/cue");
}

TEST(BenchQualityTest, ReportsHoldEverything) {
  FakeModel model;
  const std::vector<QualityItem> items = Items();
  QualityResults results;
  for (const QualityType type : {QualityType::kPredicate, QualityType::kChoice}) {
    results.runs.push_back(RunOf(&model, type, Method("letters/chat")));
    results.summaries.push_back(Summarize(items, results.runs.back()));
  }
  results.chosen = {0, 1};
  const std::string tables = QualityTables(items, results);
  EXPECT_NE(tables.find("* letters/chat"), std::string::npos) << tables;
  EXPECT_NE(tables.find("choice letters/chat refused 1 of 4: c4: too long"), std::string::npos);
  const Json json = QualityJson(items, results);
  EXPECT_EQ(json["items"].size(), 6u);
  EXPECT_EQ(json["methods"][1]["answers"][0]["probabilities"][0], 0.8);
  EXPECT_EQ(json["methods"][1]["answers"][3]["refusal"], "too long");
  EXPECT_EQ(ReliabilityPanels(results).size(), 2u);
}

TEST(BenchQualityTest, ExamplesGoBeforeTheQuestion) {
  const std::vector<QualityItem> items = Items();
  const Json body = QualityBody(items, 0, Method("letters/chat"), 2);
  ASSERT_EQ(body["examples"].size(), 2u);
  EXPECT_TRUE(body["examples"][0]["answers"][0].is_string());
  EXPECT_FALSE(QualityBody(items, 4, Method("letters/chat"), 2).contains("examples"));
}

}  // namespace
}  // namespace skein
