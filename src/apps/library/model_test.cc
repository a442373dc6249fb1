#include "skein/model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/json/json.h"

namespace skein {
namespace {

constexpr char kDefaultModel[] = SKEIN_SOURCE_DIR "/models/default";

std::unique_ptr<ServedModel> LoadDefault() {
  std::unique_ptr<ServedModel> model;
  const Status status = ServedModel::Load(kDefaultModel, {"--threads", "2"}, &model);
  EXPECT_TRUE(status.ok()) << status.message();
  return model;
}

Json AskRoute(ServedModel* model, const std::string& path, const Json& body) {
  const auto answer = std::make_shared<std::promise<std::string>>();
  const Status status = model->Post(
      path, body.dump(), [answer](int, std::string text) { answer->set_value(std::move(text)); });
  EXPECT_TRUE(status.ok()) << status.message();
  return *ParseJson(answer->get_future().get());
}

TEST(ServedModel, DecisionsAreThoseOfTheRoute) {
  const auto model = LoadDefault();
  EXPECT_TRUE(model->info().generates);
  EXPECT_GT(model->info().max_model_len, 0);
  const std::vector<Question> questions = {
      {.instructions = "Is it late?"},
      {.type = Question::Type::kChoice,
       .instructions = "What is it about?",
       .options = {"delivery", "price"},
       .descriptions = {"when it comes", "what it costs"}},
      {.type = Question::Type::kScore, .instructions = "How bad?", .options = {"low", "high"}}};
  std::vector<Decision> decisions;
  const Status status = model->Decide("The parcel is late.", questions, &decisions);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(decisions.size(), 3u);
  const Json body = *ParseJson(R"({"input": "The parcel is late.", "questions": [
      {"type": "predicate", "instructions": "Is it late?"},
      {"type": "choice", "instructions": "What is it about?", "choices": [
        {"value": "delivery", "description": "when it comes"},
        {"value": "price", "description": "what it costs"}]},
      {"type": "score", "instructions": "How bad?", "levels": [{"label": "low"}, {"label": "high"}]}
  ]})");
  const Json answers = AskRoute(model.get(), "/v1/decisions", body)["answers"];
  EXPECT_EQ(decisions[0].probability, answers[0]["probability"].get<double>());
  EXPECT_EQ(decisions[1].choice, answers[1]["choice"].get<std::string>());
  EXPECT_EQ(decisions[1].confidence, answers[1]["confidence"].get<double>());
  ASSERT_EQ(decisions[1].probabilities.size(), 2u);
  EXPECT_EQ(decisions[1].probabilities[1],
            answers[1]["probabilities"][1]["probability"].get<double>());
  EXPECT_EQ(decisions[2].score, answers[2]["score"].get<double>());
}

TEST(ServedModel, ChatsAreThoseOfTheRoute) {
  const auto model = LoadDefault();
  ChatAnswer answer;
  ChatOptions options;
  options.max_tokens = 12;
  options.temperature = 0;
  ASSERT_TRUE(model->Chat({{"user", "Hello"}}, options, &answer).ok());
  const Json body = *ParseJson(
      R"({"messages": [{"role": "user", "content": "Hello"}],
          "max_tokens": 12, "temperature": 0})");
  const Json reply = AskRoute(model.get(), "/v1/chat/completions", body);
  EXPECT_EQ(answer.text, reply["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_EQ(answer.finish_reason, reply["choices"][0]["finish_reason"].get<std::string>());
  EXPECT_EQ(answer.prompt_tokens, reply["usage"]["prompt_tokens"].get<int32_t>());
  EXPECT_EQ(answer.completion_tokens, reply["usage"]["completion_tokens"].get<int32_t>());
  ChatOptions schema;
  schema.max_tokens = 40;
  schema.json_schema = R"({"enum": ["yes", "no"]})";
  ASSERT_TRUE(model->Chat({{"user", "Hello"}}, schema, &answer).ok());
  EXPECT_TRUE(answer.text == "\"yes\"" || answer.text == "\"no\"") << answer.text;
}

TEST(ServedModel, FailuresNameTheField) {
  std::unique_ptr<ServedModel> none;
  EXPECT_EQ(ServedModel::Load(kDefaultModel, {"--no-such-option"}, &none).param(), "options");
  EXPECT_FALSE(ServedModel::Load("/nowhere/at/all", {}, &none).ok());
  EXPECT_EQ(none, nullptr);
  const auto model = LoadDefault();
  std::vector<std::vector<float>> vectors;
  EXPECT_EQ(model->Embed({"A text."}, &vectors).code(), StatusCode::kInvalidArgument);
  ChatAnswer answer;
  ChatOptions hot;
  hot.temperature = 9;
  const Status wrong = model->Chat({{"user", "Hi"}}, hot, &answer);
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.param(), "temperature");
  std::vector<Decision> decisions;
  const Question question = {.type = Question::Type::kChoice,
                             .instructions = "Which?",
                             .options = {"a", "b"},
                             .descriptions = {"one"}};
  EXPECT_EQ(model->Decide("A text.", {question}, &decisions).param(), "questions[0].descriptions");
  EXPECT_EQ(model->Post("/v1/nothing", "{}", [](int, const std::string&) { FAIL(); }).code(),
            StatusCode::kNotFound);
}

TEST(ServedModel, ItsEndEndsWhatRuns) {
  auto model = LoadDefault();
  std::atomic<int> num_answered{0};
  for (int i = 0; i < 8; ++i) {
    const Status status = model->Post(
        "/v1/completions", R"({"prompt": "Once", "max_tokens": 200, "ignore_eos": true})",
        [&](int, const std::string&) { ++num_answered; });
    ASSERT_TRUE(status.ok()) << status.message();
  }
  model.reset();
  EXPECT_EQ(num_answered, 8);
}

}  // namespace
}  // namespace skein
