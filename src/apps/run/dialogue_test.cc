#include "apps/run/dialogue.h"

#include <gtest/gtest.h>

#include <string>

#include "testing/fake_server.h"

namespace skein {
namespace {

class DialogueTest : public testing::ServerTest {
 protected:
  Dialogue Make(const std::string& system = "") {
    return Dialogue(&entry_, {{"max_tokens", 100}}, system);
  }
  // Returns the answer's text. The pieces that came must add up to it.
  std::string Ask(Dialogue* dialogue, const std::string& text) {
    std::string pieces;
    const auto answer = dialogue->Ask(text, [&](const std::string& piece) { pieces += piece; });
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer.value().texts.front(), pieces);
    return pieces;
  }
  std::string PromptText() const { return tokenizer_.Decode(engine_.last_request().prompt, true); }

  const ModelEntry entry_ = Entry();
};

TEST_F(DialogueTest, TurnsAddUpUntilTheReset) {
  Dialogue dialogue = Make("Be brief.");
  EXPECT_EQ(Ask(&dialogue, "Hi"), "Hello, world");
  EXPECT_EQ(PromptText(), "system: Be brief.\nuser: Hi\nassistant: ");
  EXPECT_EQ(engine_.last_request().generate().max_tokens, 100);
  Ask(&dialogue, "And?");
  EXPECT_EQ(PromptText(),
            "system: Be brief.\nuser: Hi\nassistant: Hello, world\nuser: And?\nassistant: ");
  dialogue.Reset();
  Ask(&dialogue, "Hi");
  EXPECT_EQ(PromptText(), "system: Be brief.\nuser: Hi\nassistant: ");
}

TEST_F(DialogueTest, AStoppedAnswerEndsAndAnEmptyOneIsNoTurn) {
  Dialogue dialogue = Make();
  engine_.set_paused(true);
  const auto ignore = [](const std::string&) {};
  const auto answer = dialogue.Ask("Hi", ignore, [] { return true; });
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer.value().finish.front(), FinishReason::kCancelled);
  EXPECT_EQ(engine_.num_cancelled(), 1);
  engine_.set_paused(false);
  Ask(&dialogue, "And?");
  EXPECT_EQ(PromptText(), "user: And?\nassistant: ");
}

TEST_F(DialogueTest, AFailureIsNoTurn) {
  Dialogue dialogue = Make();
  const auto ignore = [](const std::string&) {};
  EXPECT_FALSE(dialogue.Ask(std::string(5000, 'a'), ignore).ok());
  engine_.set_failing(true);
  EXPECT_EQ(dialogue.Ask("Hi", ignore).status().message(), "the fake engine fails");
  engine_.set_failing(false);
  Ask(&dialogue, "And?");
  EXPECT_EQ(PromptText(), "user: And?\nassistant: ");
}

TEST_F(DialogueTest, WithoutATemplateEachTextIsContinued) {
  ModelEntry plain = entry_;
  plain.chat_template = nullptr;
  Dialogue dialogue(&plain, Json::object(), "");
  EXPECT_FALSE(dialogue.chats());
  Ask(&dialogue, "Hi");
  Ask(&dialogue, "And?");
  EXPECT_EQ(PromptText(), "And?");
}

}  // namespace
}  // namespace skein
