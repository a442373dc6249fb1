#include "server/decisions/decision_reads.h"

#include <gtest/gtest.h>

#include <set>

#include "server/decisions/decision_prompt.h"
#include "testing/server_fakes.h"
#include "testing/shared.h"

namespace skein::testing {
namespace {

// One question of each kind on one input.
DecisionTask SomeTask() {
  DecisionTask task;
  task.input = "  Two caf\xC3\xA9s\nand a tea room.\n";
  task.input_field = "input";
  task.questions = {
      {DecisionKind::kPredicate, "Is there a café?", {{"yes", "at least one"}, {"no", ""}}},
      {DecisionKind::kChoice, "What is it about?", {{"food", ""}, {"sport", "or games"}}},
      {DecisionKind::kChoice, "Which?", {}},
      {DecisionKind::kScore, "How long?", {{"short", ""}, {"long", ""}}}};
  for (int i = 0; i < 255; ++i) task.questions[2].options.push_back({std::to_string(i), ""});
  task.question_fields = {"q[0]", "q[1]", "q[2]", "q[3]"};
  return task;
}

class RealTokenizer : public ::testing::TestWithParam<std::string> {
 protected:
  void Load() {
    const std::string dir = SharedDir() + "/tokenizers/" + GetParam();
    auto tokenizer = Tokenizer::Load(dir);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    tokenizer_ = std::move(tokenizer).value();
    auto chat = ChatTemplate::Load(dir);
    if (chat.ok()) template_ = std::move(chat).value();
    model_.names = {GetParam()};
    model_.engine = &engine_;
    model_.tokenizer = tokenizer_.get();
    model_.chat_template = template_.get();
    model_.max_model_len = 4096;
  }
  std::vector<TokenId> Encode(const std::string& text) {
    std::vector<TokenId> ids;
    EXPECT_TRUE(tokenizer_->Encode(text, false, &ids).ok());
    return ids;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  FakeEngine engine_;
  ModelEntry model_;
};

// The labels are found from the end of the prompt alone. This test compares them with the tokens of
// whole prompts.
TEST_P(RealTokenizer, EachLabelIsOneTokenBehindTheWholePrompt) {
  SKEIN_REQUIRE_SHARED();
  Load();
  const DecisionTask task = SomeTask();
  auto reads = PlanDecisions(model_, task);
  ASSERT_TRUE(reads.ok()) << reads.status().message();
  std::set<std::string> seen_spellings;
  const std::set<std::string> all_spellings = {"yes", "Yes", " yes", " Yes",
                                               "no",  "No",  " no",  " No"};
  const size_t spellings = all_spellings.size();
  const std::vector<std::vector<std::string>> first_labels = {
      {"yes", "no"}, {"A", "B"}, {"A", "B"}, {"0", "1"}};
  ASSERT_EQ(reads->requests.size(), task.questions.size());
  for (size_t q = 0; q < reads->requests.size(); ++q) {
    const Request& request = reads->requests[q];
    const auto& labels = std::get_if<LabelSpec>(&request.output)->tokens;
    // All spellings of yes and no that are one token.
    ASSERT_EQ(labels.size(), q == 0 ? spellings : task.questions[q].options.size());
    EXPECT_EQ(std::set<TokenId>(labels.begin(), labels.end()).size(), labels.size());
    const std::string prompt = tokenizer_->Decode(request.prompt, false);
    EXPECT_EQ(Encode(prompt), request.prompt) << prompt;
    for (size_t i = 0; i < labels.size(); ++i) {
      const std::string label = tokenizer_->Decode({&labels[i], 1}, false);
      if (q == 0) {
        seen_spellings.insert(label);
      } else if (i < 2) {
        // Falcon's tokenizer splits a digit from the space before it, so the label is the digit
        // alone.
        const bool bare = template_ != nullptr || (GetParam() == "falcon" && q == 3);
        EXPECT_EQ(label, (bare ? "" : " ") + first_labels[q][i]);
      }
      std::vector<TokenId> expected = request.prompt;
      expected.push_back(labels[i]);
      EXPECT_EQ(Encode(prompt + label), expected) << label;
    }
  }
  EXPECT_EQ(seen_spellings, all_spellings);
}

TEST_P(RealTokenizer, HeadIsShared) {
  SKEIN_REQUIRE_SHARED();
  Load();
  auto reads = PlanDecisions(model_, SomeTask());
  ASSERT_TRUE(reads.ok()) << reads.status().message();
  const Request& first = reads->requests.front();
  const auto shared = static_cast<size_t>(first.group.parent_prefix_len);
  for (const Request& request : reads->requests) {
    EXPECT_EQ(request.group.parent_prefix_len, first.group.parent_prefix_len);
    EXPECT_TRUE(
        std::equal(first.prompt.begin(), first.prompt.begin() + shared, request.prompt.begin()));
  }
  const std::string head = tokenizer_->Decode(std::span(first.prompt).first(shared), false);
  EXPECT_TRUE(head.ends_with("and a tea room.\n\n\nQuestion:")) << head;
}

TEST_P(RealTokenizer, AQuestionsPromptDoesNotDependOnTheOthers) {
  SKEIN_REQUIRE_SHARED();
  Load();
  const DecisionTask task = SomeTask();
  auto all = PlanDecisions(model_, task);
  ASSERT_TRUE(all.ok());
  for (size_t q = 0; q < task.questions.size(); ++q) {
    DecisionTask alone = task;
    alone.questions = {task.questions[q]};
    alone.question_fields = {"q"};
    auto one = PlanDecisions(model_, alone);
    ASSERT_TRUE(one.ok());
    EXPECT_EQ(one->requests.front().prompt, all->requests[q].prompt);
    EXPECT_EQ(std::get_if<LabelSpec>(&one->requests.front().output)->tokens,
              std::get_if<LabelSpec>(&all->requests[q].output)->tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealTokenizer,
                         ::testing::Values("qwen3", "gpt2", "falcon", "gpt-neox"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

// A template that is a format with %s for the message.
class OneTemplate final : public ChatTemplate {
 public:
  // `answer`: the text before an assistant's message; empty: the template takes no such message.
  explicit OneTemplate(std::string format, std::string answer = {})
      : format_(std::move(format)), answer_(std::move(answer)) {}
  Result<std::string> Render(const Json& variables) const override {
    EXPECT_EQ(variables.at("enable_thinking"), false);
    const Json& messages = variables.at("messages");
    EXPECT_EQ(variables.at("add_generation_prompt"), messages.size() != 2);
    std::string text = format_;
    const std::string content = messages.at(0).at("content");
    for (size_t at; (at = text.find("%s")) != std::string::npos;) text.replace(at, 2, content);
    if (messages.size() == 1) return text;
    if (answer_.empty() || messages.size() > 2)
      return Status(StatusCode::kInvalidArgument, "one message only");
    return text + answer_ + messages.at(1).at("content").get<std::string>() + "</s>";
  }

 private:
  std::string format_;
  std::string answer_;
};

TEST(PromptFrameTest, FollowsTheTemplate) {
  ByteTokenizer tokenizer;
  ModelEntry model;
  model.names = {"m"};
  model.tokenizer = &tokenizer;
  const auto frame = [&](const std::string& format, const std::string& answer = {}) {
    OneTemplate chat(format, answer);
    model.chat_template = &chat;
    model.traits.space_before_answer = WritesSpaceBeforeAnswer(model);
    return MakePromptFrame(model, PromptForm::kChat);
  };
  Result<PromptFrame> plain = frame("<u>%s</u><a>");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->before, "<u>");
  EXPECT_EQ(plain->after, "</u><a>");
  // Labels are first looked for in the form in which the template writes answers.
  EXPECT_FALSE(plain->space_before_label);
  EXPECT_TRUE(frame("[INST] %s[/INST]", " ")->space_before_label);
  EXPECT_FALSE(frame("<u>%s</u><a>", "\n")->space_before_label);
  // A block of thoughts that the template leaves open is closed by the frame.
  EXPECT_EQ(frame("%s<a><think>\n")->after, "<a><think>\n\n</think>\n\n");
  EXPECT_EQ(frame("%s<a><think>\n\n</think>\n\n")->after, "<a><think>\n\n</think>\n\n");
  // gpt-oss's messages begin with their channel.
  EXPECT_EQ(frame("%s<|end|><|start|>assistant")->after,
            "<|end|><|start|>assistant<|channel|>final<|message|>");
  EXPECT_EQ(frame("nothing").status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(frame("%s and %s").status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace skein::testing
