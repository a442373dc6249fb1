#include "bench/quality/quality_items.h"

#include <gtest/gtest.h>

#include <map>

namespace skein {
namespace {

std::vector<QualityItem> Parsed(const std::string& text) {
  Result<std::vector<QualityItem>> items = ParseQualityItems(text, "f");
  EXPECT_TRUE(items.ok()) << items.status().message();
  return items.ok() ? std::move(items).value() : std::vector<QualityItem>{};
}

std::string Predicate(const std::string& id, bool answer, const std::string& question = "?") {
  return R"({"id": ")" + id + R"(", "task": "t", "input": "x", "question": )" +
         R"({"type": "predicate", "instructions": ")" + question + R"("}, "answer": )" +
         (answer ? "true" : "false") + "}\n";
}

TEST(QualityItemsTest, EachTypeHasItsLabels) {
  const std::vector<QualityItem> items = Parsed(
      Predicate("p", false) + "\n" +
      R"({"id": "c", "task": "c", "input": "x", "question": {"type": "choice", )"
      R"("instructions": "?", "choices": [{"value": "a"}, {"value": true}]}, "answer": true})"
      "\n"
      R"({"task": "s", "input": [], "question": {"type": "score", "instructions": "?", )"
      R"("levels": [{"label": "low"}, {"label": "high"}]}, "answer": 1})"
      "\n"
      R"({"id": "r", "task": "r", "query": "q", "documents": ["a", "b"], "answer": [1, 0, 1]})");
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].labels, (std::vector<std::string>{"true", "false"}));
  EXPECT_EQ(items[0].answer, 1u);
  EXPECT_EQ(items[1].labels, (std::vector<std::string>{"a", "true"}));
  EXPECT_EQ(items[1].answer, 1u);
  EXPECT_EQ(ReversedQuestion(items[1].question)["choices"][0]["value"], true);
  EXPECT_EQ(items[2].id, "line-4");
  EXPECT_EQ(items[2].answer_value, 1);
  EXPECT_EQ(items[3].type, QualityType::kRelevance);
  EXPECT_EQ(items[3].relevant, (std::vector<size_t>{0, 1}));
}

// A labelled row gives an item for each question that has an answer.
TEST(QualityItemsTest, RowsOfQuestionsAreItems) {
  const std::vector<QualityItem> items = Parsed(
      R"({"state": {"text": "ä", "n": 1}, "questions": {)"
      R"("want": {"type": "choice", "instructions": "w?", "criteria": {"a": "first", "b": null}}, )"
      R"("level": {"type": "score", "instructions": "l?", "criteria": ["low", "high"]}, )"
      R"("angry": {"type": "noul", "instructions": "n?", "criteria": {"true": "is"}}, )"
      R"("none": {"type": "noul", "instructions": "?"}}, )"
      R"("expected": {"want": "b", "level": 1, "angry": false}})"
      "\n"
      R"({"state": "x", "questions": {"want": {"type": "choice", "instructions": "w?", )"
      R"("criteria": ["a", "b"]}, "level": {"type": "score", "instructions": "l?", )"
      R"("criteria": ["low", "high"], "label": "high"}}, )"
      R"("gold": {"want": {"probabilities": {"a": 0.7, "b": 0.3}}}})");
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(items[0].id, "line-1/want");
  EXPECT_EQ(items[0].task, "want");
  EXPECT_EQ(items[0].input, R"({"text": "ä", "n": 1})");
  EXPECT_EQ(items[0].question["choices"][0]["description"], "first");
  EXPECT_FALSE(items[0].question["choices"][1].contains("description"));
  EXPECT_EQ(items[0].answer, 1u);
  EXPECT_EQ(items[1].question["levels"][1]["label"], "high");
  EXPECT_EQ(items[1].answer, 1u);
  EXPECT_EQ(items[2].type, QualityType::kPredicate);
  EXPECT_EQ(items[2].question["criteria"]["true"], "is");
  EXPECT_EQ(items[2].labels[items[2].answer], "false");
  EXPECT_EQ(items[3].id, "line-2/want");
  EXPECT_EQ(items[3].answer, 0u);
  EXPECT_EQ(items[4].answer, 1u);
}

TEST(QualityItemsTest, WrongRowsNameTheField) {
  const std::string head = R"({"state": "x", "questions": )";
  const std::string noul = R"({"q": {"type": "noul", "instructions": "?"}})";
  const std::map<std::string, std::string> wrong = {
      {head + "[]}", "f:1: questions must be an object"},
      {head + R"({"q": 1}})", "f:1: questions.q must be an object"},
      {head + R"({"q": {"type": "x", "instructions": "?"}}})", "f:1: questions.q.type must be"},
      {head + R"({"q": {"type": "choice", "instructions": "?"}}})",
       "f:1: questions.q.criteria must be"},
      {head + noul + "}", "f:1: expected must be an object"},
      {head + noul + R"(, "expected": {"q": "perhaps"}})", "f:1: expected.q must be"},
      {head + noul + R"(, "gold": {"q": 0.5}})", "f:1: gold.q must be"},
      {head +
           R"({"q": {"type": "score", "instructions": "?", "criteria": ["a", "b"], "label": 2}}})",
       "f:1: questions.q.label must be"}};
  for (const auto& [text, message] : wrong) {
    const auto items = ParseQualityItems(text, "f");
    ASSERT_FALSE(items.ok()) << text;
    EXPECT_EQ(items.status().message().substr(0, message.size()), message);
  }
}

TEST(QualityItemsTest, ErrorsNameFileLineAndField) {
  const std::string head = R"({"id": "a", "task": "t", "input": "x", "question": )";
  const std::map<std::string, std::string> wrong = {
      {"no JSON", "f:2: not JSON"},
      {"[]", "f:2: must be a JSON object"},
      {R"({"id": 7})", "f:2: id must be"},
      {R"({"task": "t", "answer": true})", "f:2: question must be"},
      {R"({"question": {}, "answer": true})", "f:2: input must be"},
      {head + R"({"type": "predicate"}})", "f:2: answer must be"},
      {head + R"({"type": "predicate"}, "answer": "yes"})", "f:2: answer must be true or false"},
      {head + R"({"type": "x"}, "answer": 1})", "f:2: question.type must be"},
      {head + R"({"type": "choice", "choices": [{"value": "a"}, {}]}, "answer": "a"})",
       "f:2: question.choices[1].value must be"},
      {head + R"({"type": "choice", "choices": [{"value": "a"}, {"value": "b"}]}, "answer": "c"})",
       "f:2: answer must be one of the choices' values, got \"c\""},
      {head + R"({"type": "score", "levels": [{"label": "a"}, {"label": "b"}]}, "answer": 2})",
       "f:2: answer must be a level from 0 to 1, got 2"},
      {R"({"query": ""})", "f:2: query must be"},
      {R"({"query": "q", "documents": ["a"]})", "f:2: documents must be"},
      {R"({"query": "q", "documents": ["a", "b"], "answer": [2]})", "f:2: answer must be"},
      {R"({"query": "q", "documents": ["a", "b"], "answer": []})", "f:2: answer must be"},
      {Predicate("p", true), "f:2: id must be"},
      {R"({"task": "t", "query": "q", "documents": ["a", "b"], "answer": [0]})",
       "f:2: task must be of one type"},
  };
  for (const auto& [line, message] : wrong) {
    const auto items = ParseQualityItems(Predicate("p", true) + line, "f");
    EXPECT_EQ(items.status().code(), StatusCode::kInvalidArgument) << line;
    EXPECT_EQ(items.status().message().substr(0, message.size()), message) << line;
  }
  EXPECT_FALSE(ParseQualityItems("\n", "f").ok());
  EXPECT_EQ(LoadQualityItems("/nowhere").status().code(), StatusCode::kNotFound);
}

TEST(QualityItemsTest, TheSetOfTheSourceTreeIsWhole) {
  const auto items = LoadQualityItems(SKEIN_SOURCE_DIR "/bench/quality/items.jsonl");
  ASSERT_TRUE(items.ok()) << items.status().message();
  EXPECT_EQ(items.value().size(), 400u);
  std::map<std::string, int> first;
  std::map<std::string, int> all;
  for (const QualityItem& item : items.value()) {
    ++all[item.task];
    first[item.task] += 1 - item.half;
  }
  EXPECT_EQ(all.size(), 10u);
  for (const auto& [task, count] : all) EXPECT_EQ(first[task] * 2, count) << task;
}

TEST(QualityItemsTest, HalvesDependOnTheIdsAlone) {
  std::string text;
  for (int i = 0; i < 9; ++i) text = Predicate("i" + std::to_string(i), i % 2 == 0) + text;
  const std::vector<QualityItem> backwards = Parsed(text);
  text.clear();
  for (int i = 0; i < 9; ++i) text += Predicate("i" + std::to_string(i), i % 2 == 0);
  const std::vector<QualityItem> items = Parsed(text);
  int first = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].half, backwards[8 - i].half);
    first += items[i].half == 0 ? 1 : 0;
  }
  EXPECT_EQ(first, 5);
}

TEST(QualityItemsTest, ExamplesComeFromTheOtherHalfWithAlternatingLabels) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += Predicate("i" + std::to_string(i), i % 2 == 0);
  text += Predicate("other", true, "another question");
  const std::vector<QualityItem> items = Parsed(text);
  for (size_t i = 0; i < 40; ++i) {
    const std::vector<size_t> examples = ExamplesFor(items, i, 4);
    ASSERT_EQ(examples.size(), 4u);
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_NE(items[examples[k]].half, items[i].half);
      EXPECT_EQ(items[examples[k]].answer, 1 - k % 2);  // "false" before "true"
    }
    EXPECT_EQ(ExamplesFor(items, i, 4), examples);
  }
  EXPECT_TRUE(ExamplesFor(items, 40, 2).empty());
  EXPECT_LE(ExamplesFor(items, 0, 1000).size(), 21u);
}

TEST(QualityItemsTest, LimitsEachTask) {
  auto items = LoadQualityItems(SKEIN_SOURCE_DIR "/bench/quality/items.jsonl");
  ASSERT_TRUE(items.ok());
  LimitQualityItems(3, &items.value());
  EXPECT_EQ(items.value().size(), 30u);
}

}  // namespace
}  // namespace skein
