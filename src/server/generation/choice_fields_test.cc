#include "server/generation/choice_fields.h"

#include <gtest/gtest.h>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

using Ids = std::vector<TokenId>;

// A tokenizer that adds a space before the first word of a text, as SentencePiece does, and has no
// token for 'q'.
class SpacingTokenizer final : public ByteTokenizer {
 public:
  Status Encode(std::string_view text, bool special, std::vector<TokenId>* ids) const override {
    if (!text.starts_with('\n')) ids->push_back(' ');
    std::vector<TokenId> plain;
    const Status status = ByteTokenizer::Encode(text, special, &plain);
    for (TokenId id : plain) ids->push_back(id == 'q' ? 'k' : id);
    return status;
  }
};

std::vector<Ids> Read(const ModelEntry& model, const std::string& body, Status* status) {
  const Json json = *ParseJson(body);
  FieldReader reader(json);
  std::vector<Ids> choices = ReadChoices(&reader, model);
  *status = reader.status();
  return choices;
}

TEST(ReadChoices, BothSpellingsAndNone) {
  const ByteTokenizer tokenizer;
  ModelEntry model;
  model.tokenizer = &tokenizer;
  Status status;
  const std::vector<Ids> expected = {{'n', 'o'}, {'y'}};
  EXPECT_EQ(Read(model, R"({"guided_choice": ["no", "y"]})", &status), expected);
  EXPECT_EQ(Read(model, R"({"structured_outputs": {"choice": ["no", "y"]}})", &status), expected);
  EXPECT_TRUE(status.ok());
  for (const char* none : {"{}", R"({"structured_outputs": {}, "guided_choice": null})"}) {
    EXPECT_TRUE(Read(model, none, &status).empty());
    EXPECT_TRUE(status.ok());
  }
}

// The text of a choice is text, whatever tokens it spells.
TEST(ReadChoices, SpecialTokensInAChoiceAreText) {
  const auto tokenizer =
      Tokenizer::Load(SKEIN_SOURCE_DIR "/tests/data/tokenizers/llama3-style").value();
  ModelEntry model;
  model.tokenizer = tokenizer.get();
  Status status;
  const std::string text = "a<|eot_id|>b";
  const std::vector<Ids> choices =
      Read(model, R"({"guided_choice": [")" + text + R"(", "c"]})", &status);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_EQ(tokenizer->Decode(choices[0], /*skip_special_tokens=*/true), text);
}

TEST(ReadChoices, BeginningsOfOthersAreEnded) {
  const ByteTokenizer tokenizer;
  ModelEntry model;
  model.tokenizer = &tokenizer;
  Status status;
  const std::string body = R"({"guided_choice": ["ab", "a", "b"]})";
  EXPECT_TRUE(Read(model, body, &status).empty());
  EXPECT_EQ(status.param(), "guided_choice");
  model.defaults.eos_token_ids = {kFakeEos, 5};
  EXPECT_EQ(Read(model, body, &status), (std::vector<Ids>{{'a', 'b'}, {'a', kFakeEos}, {'b'}}));
  model.defaults.eos_token_ids = {5, kFakeEos};  // the tokenizer's own is preferred
  EXPECT_EQ(Read(model, body, &status), (std::vector<Ids>{{'a', 'b'}, {'a', kFakeEos}, {'b'}}));
  model.defaults.eos_token_ids = {5, 6};
  EXPECT_EQ(Read(model, body, &status), (std::vector<Ids>{{'a', 'b'}, {'a', 5}, {'b'}}));
}

TEST(ReadChoices, TextsAreWrittenAsInTheMiddleOfAText) {
  const SpacingTokenizer tokenizer;
  ModelEntry model;
  model.tokenizer = &tokenizer;
  Status status;
  EXPECT_EQ(Read(model, R"({"guided_choice": ["no", "y"]})", &status),
            (std::vector<Ids>{{'n', 'o'}, {'y'}}));
  EXPECT_TRUE(Read(model, R"({"guided_choice": ["aqua"]})", &status).empty());
  EXPECT_EQ(status.message(),
            "guided_choice must be strings that the model's tokenizer writes unchanged, got "
            "\"aqua\"");
}

using ChoiceTest = ServerTest;

TEST_F(ChoiceTest, TheAnswerIsTheChoice) {
  Start();
  const std::string fields = R"("guided_choice": ["yes", "yes, but", "no"], "n": 2)";
  const Answer answer = Complete(fields + R"(, "max_tokens": 8)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  for (const Json& choice : json["choices"]) {
    EXPECT_EQ(choice["text"], "yes");
    EXPECT_EQ(choice["finish_reason"], "stop");
    EXPECT_TRUE(choice["stop_reason"].is_null());
  }
  const GenerateSpec spec = engine_.last_request().generate();
  ASSERT_EQ(spec.choices.size(), 3u);
  EXPECT_EQ(spec.choices[0], (Ids{'y', 'e', 's', kFakeEos}));
  EXPECT_EQ(spec.choices[2], (Ids{'n', 'o'}));
  EXPECT_TRUE(spec.stop_token_ids.empty());
  // No form of the answer shows the end token.
  const Json shown = Complete(fields + R"(, "ignore_eos": true, "include_stop_str_in_output": true,
                                            "skip_special_tokens": false)")
                         .json();
  EXPECT_EQ(shown["choices"][1]["text"], "yes");
  std::string text;
  for (const std::string& event :
       Complete(R"("guided_choice": ["no", "yes"], "stream": true)").Events()) {
    if (event != "[DONE]") text += (*ParseJson(event))["choices"][0]["text"];
  }
  EXPECT_EQ(text, "no");
}

TEST_F(ChoiceTest, ThereIsRoomForTheLongest) {
  Start();
  const Answer answer =
      Complete(R"("structured_outputs": {"choice": ["a", "twenty-two letters long"]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(engine_.last_request().generate().max_tokens, 23);
  const std::string longest(4095, 'x');
  const Answer full =
      Post("/v1/completions", R"({"prompt": "Hi", "guided_choice": [")" + longest + "\"]}");
  EXPECT_EQ(full.status, 400);
  EXPECT_EQ(full.json()["error"]["param"], "prompt");
}

TEST_F(ChoiceTest, MistakesAreNamed) {
  Start();
  const std::pair<const char*, const char*> cases[] = {
      {R"("guided_choice": "a")", "guided_choice"},
      {R"("guided_choice": [])", "guided_choice"},
      {R"("guided_choice": ["a", ""])", "guided_choice"},
      {R"("guided_choice": ["a", "b", "a"])", "guided_choice"},
      {R"("guided_choice": ["a", 5])", "guided_choice"},
      {R"("guided_choice": ["a"], "stop": "b")", "stop"},
      {R"("guided_choice": ["a"], "allowed_token_ids": [5])", "allowed_token_ids"},
      {R"("guided_choice": ["a", "seventeen letters"])", "max_tokens"},
      {R"("guided_choice": ["a"], "structured_outputs": {"choice": ["b"]})", "structured_outputs"},
      {R"("guided_choice": ["a"], "guided_json": {"type": "string"})", "guided_json"},
      {R"("structured_outputs": {"choice": {}})", "structured_outputs.choice"},
      {R"("structured_outputs": {"choice": ["a"], "regex": "a+"})", "structured_outputs.regex"},
      {R"("structured_outputs": ["a"])", "structured_outputs"},
  };
  for (const auto& [field, param] : cases) {
    const Answer answer = Complete(std::string(R"("max_tokens": 16, )") + field);
    EXPECT_EQ(answer.status, 400) << field << " " << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << field << " " << answer.body;
  }
}

TEST_F(ChoiceTest, OfAChat) {
  Start();
  const Json json = Post("/v1/chat/completions",
                         R"({"messages": [{"role": "u", "content": "x"}],
                             "structured_outputs": {"choice": ["maybe", "no"]}})")
                        .json();
  EXPECT_EQ(json["choices"][0]["message"]["content"], "maybe");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
}

}  // namespace
}  // namespace skein::testing
