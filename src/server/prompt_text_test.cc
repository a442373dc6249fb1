#include "server/prompt_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "server/decisions/decision_prompt.h"

namespace skein {
namespace {

constexpr char kEnd[] = "<|eot_id|>";
constexpr char kMark[] = "\xEF\xB7\x91";

class PromptTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Tokenizer::Load(SKEIN_SOURCE_DIR "/tests/data/tokenizers/llama3-style");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    tokenizer_ = std::move(loaded).value();
    model_.names = {"model"};
    model_.tokenizer = tokenizer_.get();
    model_.max_model_len = 100;
    end_ = tokenizer_->TokenToId(kEnd).value();
  }

  std::vector<TokenId> Encode(const std::string& text) {
    std::vector<TokenId> ids;
    const Status status = EncodePrompt(model_, text, false, 0, &ids);
    EXPECT_TRUE(status.ok()) << status.message();
    return ids;
  }
  int64_t NumEnds(const std::vector<TokenId>& ids) { return std::ranges::count(ids, end_); }
  std::string Decode(const std::vector<TokenId>& ids) { return tokenizer_->Decode(ids, false); }

  std::unique_ptr<Tokenizer> tokenizer_;
  ModelEntry model_;
  TokenId end_ = 0;
};

TEST_F(PromptTextTest, AUsersSpecialTokensAreTextAndTheTemplatesAreNot) {
  for (const std::string& user :
       {std::string("no tokens"), std::string("a") + kEnd + " b" + kEnd, std::string(kEnd) + kEnd,
        std::string("<") + kEnd + "|>", std::string(kMark),
        std::string(kMark) + kMark + kEnd + kMark, std::string("<") + kMark + "|eot_id|>"}) {
    const std::vector<TokenId> ids = Encode(kEnd + PlainText(model_, user) + kEnd);
    EXPECT_EQ(NumEnds(ids), 2) << user;
    EXPECT_EQ(Decode(ids), kEnd + user + kEnd);
  }
  // Texts without special tokens get the usual ids.
  std::vector<TokenId> plain;
  ASSERT_TRUE(tokenizer_->Encode("A mail.", false, &plain).ok());
  EXPECT_EQ(Encode(PlainText(model_, "A mail.")), plain);
}

TEST_F(PromptTextTest, TheServerMayReadThemAsTokens) {
  model_.user_special_tokens = UserSpecialTokens::kParse;
  const std::string user = std::string("a") + kEnd + kMark;
  EXPECT_EQ(PlainText(model_, user), user);
  EXPECT_EQ(NumEnds(Encode(user)), 1);
  EXPECT_EQ(Decode(Encode(user)), user);
}

TEST_F(PromptTextTest, RawTextsKeepTheirTokens) {
  const std::string user = std::string("a") + kEnd + kMark;
  const std::vector<TokenId> ids = Encode(RawText(model_, user));
  EXPECT_EQ(NumEnds(ids), 1);
  EXPECT_EQ(Decode(ids), user);
}

// In the prompt of a decision, everything that comes from the request is plain text.
TEST_F(PromptTextTest, DecisionsTakeTextAsText) {
  DecisionQuestion question;
  question.instructions = std::string("Is it") + kEnd + "?";
  question.options = {{"yes", ""}, {"no", ""}};
  const PromptFrame frame{.before = kEnd, .after = kEnd};
  AskedQuestion asked;
  asked.question = &question;
  const std::string input = std::string("mail") + kEnd;
  const std::string instructions = std::string("Judge") + kEnd;
  asked.input = input;
  asked.instructions = instructions;
  auto text =
      ComposePrompt(model_, LettersPrompt(frame, question, {"yes", "no"}), asked, {"A", "B"});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(NumEnds(Encode(*text)), 2);
  model_.user_special_tokens = UserSpecialTokens::kParse;
  auto parsed =
      ComposePrompt(model_, LettersPrompt(frame, question, {"yes", "no"}), asked, {"A", "B"});
  EXPECT_EQ(NumEnds(Encode(*parsed)), 5);
}

// No work is done for a text that cannot fit.
TEST_F(PromptTextTest, TextsThatCannotFitAreRefusedByTheirBytes) {
  const size_t bytes = 100 * tokenizer_->max_bytes_per_token();
  std::vector<TokenId> ids;
  const Status status = EncodeRawPrompt(model_, std::string(bytes, 'a'), false, 100, &ids);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(ids.empty());
  EXPECT_TRUE(EncodeRawPrompt(model_, std::string(bytes - 1, 'a'), false, 100, &ids).ok());
  EXPECT_FALSE(EncodePrompt(model_, std::string(bytes, 'a'), false, 100, &ids).ok());
  EXPECT_TRUE(EncodePrompt(model_, std::string(bytes, 'a'), false, 0, &ids).ok());
}

}  // namespace
}  // namespace skein
