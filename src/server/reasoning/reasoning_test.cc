#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "testing/fake_server.h"
#include "testing/shared.h"

namespace skein::testing {
namespace {

constexpr char kTurns[] =
    "{% for m in messages %}{{ m.role }}: "
    "{% if m.reasoning_content %}[{{ m.reasoning_content }}|{{ m.thinking }}]{% endif %}"
    "{{ m.content }}\n{% endfor %}{% if reasoning_effort %}({{ reasoning_effort }}){% endif %}"
    "assistant: ";
constexpr char kThinkTurns[] =
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}";

std::unique_ptr<ChatTemplate> Parsed(const std::string& source) {
  auto parsed = ChatTemplate::Parse(source);
  EXPECT_TRUE(parsed.ok()) << source << parsed.status().message();
  return std::move(parsed).value();
}

class ReasoningTest : public ServerTest {
 protected:
  // Serves a model with this template.
  void Serve(const std::string& source, ReasoningStyle style) {
    own_template_ = Parsed(source);
    chat_template_ = own_template_.get();
    reasoning_.style = DetectReasoningStyle(*own_template_);
    EXPECT_EQ(reasoning_.style, style);
    Start();
  }
  void ServeThinkTags() { Serve(std::string(kTurns) + kThinkTurns, ReasoningStyle::kThinkTags); }
  void ServeOpenThoughts() { Serve(std::string(kTurns) + "<think>\n", ReasoningStyle::kThinkTags); }
  void ServeHarmony() {
    tools_.style = ToolStyle::kHarmony;
    const std::string named = "{# <|channel|> <|message|> #}";
    Serve(named + kTurns, ReasoningStyle::kHarmony);
  }

  Answer Chat(const std::string& fields,
              const std::string& messages = R"([{"role": "user", "content": "2+2?"}])") {
    return Post("/v1/chat/completions",
                R"({"messages": )" + messages + (fields.empty() ? "" : ", " + fields) + "}");
  }
  Json Message(const std::string& fields = "") {
    const Answer answer = Chat(fields);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["choices"][0]["message"];
  }
  std::string PromptText() const { return tokenizer_.Decode(engine_.last_request().prompt, true); }

  std::unique_ptr<ChatTemplate> own_template_;
};

constexpr char kThinks[] = "<think>\nI add.\n</think>\n\nIt is 4.";
constexpr char kHarmonyThinks[] =
    "<|channel|>analysis<|message|>I add.<|end|><|start|>assistant<|channel|>final<|message|>It is "
    "4.";
constexpr char kHarmonyCalls[] =
    "<|channel|>analysis<|message|>I add.<|end|><|start|>assistant<|channel|>commentary "
    "to=functions.add <|constrain|>json<|message|>{\"a\": 1}";
constexpr char kTools[] = R"("tools": [{"type": "function", "function": {"name": "add",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}},
    "required": ["a"]}}}])";

TEST_F(ReasoningTest, AWholeAnswer) {
  ServeThinkTags();
  engine_.set_reply(kThinks);
  const Json answer = Chat("").json();
  const Json& message = answer["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "I add.");
  EXPECT_EQ(message["reasoning"], "I add.");
  EXPECT_EQ(message["content"], "It is 4.");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  // Bytes cannot tell which tokens belong to a mark.
  EXPECT_FALSE(answer["usage"].contains("completion_tokens_details"));
  engine_.set_reply("It is 4.");
  EXPECT_EQ(Message()["content"], "It is 4.");
  EXPECT_FALSE(Message().contains("reasoning_content"));
}

TEST_F(ReasoningTest, AStream) {
  ServeThinkTags();
  engine_.set_reply(kThinks);
  std::map<size_t, std::string> reasoning;
  std::map<size_t, std::string> content;
  std::map<size_t, Json> finish;
  size_t num_pieces = 0;
  for (const std::string& event : Chat(R"("stream": true, "n": 2)").Events()) {
    if (event == "[DONE]") continue;
    const Json choice = (*ParseJson(event))["choices"][0];
    const size_t index = choice["index"];
    const Json& delta = choice["delta"];
    const std::string piece = delta.value("reasoning_content", "");
    EXPECT_EQ(delta.value("reasoning", ""), piece);
    num_pieces += piece.empty() ? 0 : 1;
    EXPECT_TRUE(piece.empty() || content[index].empty()) << event;
    reasoning[index] += piece;
    content[index] += delta.value("content", "");
    if (!choice["finish_reason"].is_null()) finish[index] = choice["finish_reason"];
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(reasoning[i], "I add.");
    EXPECT_EQ(content[i], "It is 4.");
    EXPECT_EQ(finish[i], "stop");
  }
  EXPECT_GT(num_pieces, 4u);
}

TEST_F(ReasoningTest, AThoughtThatThePromptBegins) {
  ServeOpenThoughts();
  engine_.set_reply("I add.\n</think>\n\nIt is 4.");
  EXPECT_EQ(Message()["reasoning_content"], "I add.");
  EXPECT_EQ(Message()["content"], "It is 4.");
}

TEST_F(ReasoningTest, ABudgetThatEndsInAThought) {
  ServeThinkTags();
  engine_.set_reply(kThinks);
  const Json choice = Chat(R"("max_tokens": 13)").json()["choices"][0];
  EXPECT_EQ(choice["message"]["reasoning_content"], "I add");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_EQ(choice["finish_reason"], "length");
  // A stop string may end a thought.
  const Json stopped = Chat(R"("stop": "add")").json()["choices"][0];
  EXPECT_EQ(stopped["message"]["reasoning_content"], "I");
  EXPECT_TRUE(stopped["message"]["content"].is_null());
  EXPECT_EQ(stopped["stop_reason"], "add");
}

TEST_F(ReasoningTest, LogprobsAreThoseOfAllTokens) {
  ServeThinkTags();
  engine_.set_reply(kThinks);
  const Json choice = Chat(R"("logprobs": true, "max_tokens": 34)").json()["choices"][0];
  EXPECT_EQ(choice["logprobs"]["content"].size(), 34u);
  EXPECT_EQ(choice["logprobs"]["content"][0]["token"], "<");
  size_t num_tokens = 0;
  for (const std::string& event :
       Chat(R"("logprobs": true, "max_tokens": 34, "stream": true)").Events()) {
    if (event == "[DONE]") continue;
    const Json logprobs = (*ParseJson(event))["choices"][0]["logprobs"];
    if (logprobs.is_object()) num_tokens += logprobs["content"].size();
  }
  EXPECT_EQ(num_tokens, 34u);
}

TEST_F(ReasoningTest, WithoutThinkingAllIsContent) {
  ServeThinkTags();
  engine_.set_reply(kThinks);
  for (const char* fields :
       {R"("chat_template_kwargs": {"enable_thinking": false})", R"("reasoning_effort": "none")"}) {
    const Json message = Message(fields);
    EXPECT_TRUE(PromptText().ends_with("assistant: <think>\n\n</think>\n\n")) << PromptText();
    EXPECT_EQ(message["content"], kThinks) << fields;
    EXPECT_FALSE(message.contains("reasoning_content"));
  }
  // The request's own variables come before its effort.
  EXPECT_EQ(Message(R"("reasoning_effort": "none",
                       "chat_template_kwargs": {"enable_thinking": true})")["content"],
            "It is 4.");
}

TEST_F(ReasoningTest, EffortsAreVariablesOfTheTemplate) {
  ServeThinkTags();
  for (const char* effort : {"minimal", "low", "medium", "high"}) {
    (void)Message(R"("reasoning_effort": ")" + std::string(effort) + "\"");
    EXPECT_EQ(PromptText(), "user: 2+2?\n(" + std::string(effort) + ")assistant: ");
  }
  (void)Message(R"("chat_template_kwargs": {"reasoning_effort": "high"})");
  EXPECT_EQ(PromptText(), "user: 2+2?\n(high)assistant: ");
  ServeHarmony();
  for (const char* effort : {"none", "minimal", "low"}) {
    (void)Message(R"("reasoning_effort": ")" + std::string(effort) + "\"");
    EXPECT_EQ(PromptText(), "user: 2+2?\n(low)assistant: ");
  }
}

TEST_F(ReasoningTest, ReasoningIsLeftOutOrInTheContent) {
  ServeThinkTags();
  engine_.set_reply(kThinks);
  const Json without = Message(R"("include_reasoning": false)");
  EXPECT_EQ(without["content"], "It is 4.");
  EXPECT_FALSE(without.contains("reasoning_content"));
  EXPECT_EQ(Message(R"("reasoning_format": "none")")["content"], kThinks);
  EXPECT_EQ(Message(R"("reasoning_format": "deepseek")")["content"], "It is 4.");
  // The server may have another default.
  reasoning_.separates = false;
  Start();
  EXPECT_EQ(Message()["content"], kThinks);
  EXPECT_EQ(Message(R"("reasoning_format": "auto")")["content"], "It is 4.");
}

TEST_F(ReasoningTest, AConstrainedAnswerIsContent) {
  ServeOpenThoughts();
  engine_.set_reply("{\"x\": 1}");
  for (const char* fields :
       {R"("response_format": {"type": "json_object"})", R"("guided_regex": "[^a]*")"}) {
    const Json message = Message(fields);
    EXPECT_EQ(message["content"], "{\"x\": 1}") << fields;
    EXPECT_FALSE(message.contains("reasoning_content"));
    EXPECT_TRUE(PromptText().ends_with("assistant: <think>\n\n</think>\n\n")) << PromptText();
  }
  EXPECT_EQ(Message(R"("guided_choice": ["yes"])")["content"], "yes");
  engine_.set_reply("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>");
  const Json forced = Message(R"("tool_choice": "required", )" + std::string(kTools));
  EXPECT_EQ(forced["tool_calls"][0]["function"]["name"], "add");
  EXPECT_FALSE(forced.contains("reasoning_content"));
  EXPECT_TRUE(PromptText().ends_with("assistant: <think>\n\n</think>\n\n")) << PromptText();
}

TEST(HarmonyEndsTest, TokensOfAWholeAnswer) {
  const MarkTokenizer tokenizer({"<|end|>", "<|return|>", "<|call|>"});
  std::vector<TokenId> ids = {7, 1, 2};
  AddHarmonyEnds(tokenizer, &ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{7, 2, 3}));
  AddHarmonyEnds(ByteTokenizer(), &ids);
  EXPECT_EQ(ids.size(), 3u);
}

TEST(ReasoningStyleTest, PromptsGoOnWithTheAnswer) {
  const auto opened = [](std::string prompt) {
    CloseThoughts(&prompt);
    OpenFinalChannel(&prompt);
    return prompt;
  };
  EXPECT_EQ(opened("<a><think>\n"), "<a><think>\n\n</think>\n\n");
  EXPECT_EQ(opened("<a><think>\n\n</think>\n\n"), "<a><think>\n\n</think>\n\n");
  EXPECT_EQ(opened("<|end|><|start|>assistant"),
            "<|end|><|start|>assistant<|channel|>final<|message|>");
  EXPECT_EQ(opened("<a>"), "<a>");
}

TEST_F(ReasoningTest, CallsBehindAThought) {
  ServeThinkTags();
  engine_.set_reply(
      "<think>\nI add.\n</think>\n\n<tool_call>\n{\"name\": \"add\", \"arguments\": "
      "{\"a\": 1}}\n</tool_call>");
  const Json choice = Chat(kTools).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["reasoning_content"], "I add.");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"a\": 1}");
}

TEST_F(ReasoningTest, Harmony) {
  ServeHarmony();
  engine_.set_reply(kHarmonyThinks);
  EXPECT_EQ(Message()["reasoning_content"], "I add.");
  EXPECT_EQ(Message()["content"], "It is 4.");
  EXPECT_EQ(Message(R"("include_reasoning": false)")["content"], "It is 4.");
  EXPECT_EQ(Message(R"("reasoning_format": "none")")["content"], "I add.\nIt is 4.");
  engine_.set_reply(kHarmonyCalls);
  const Json choice = Chat(kTools).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["reasoning_content"], "I add.");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "add");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"a\": 1}");
  // A forced call begins the answer.
  const std::string call =
      "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}";
  engine_.set_reply(call);
  const Json forced = Message(R"("tool_choice": "required", )" + std::string(kTools));
  EXPECT_EQ(forced["tool_calls"][0]["function"]["arguments"], "{\"a\": 1}");
  EXPECT_TRUE(Accepts(call));
  EXPECT_FALSE(Accepts(call + call));
  EXPECT_FALSE(Accepts("<|channel|>final<|message|>Hello"));
  // With a schema the answer is a call, or a message that begins with its channel.
  const std::string text = "<|channel|>final<|message|>{\"x\": 1}";
  engine_.set_reply(text);
  const Json either = Message(R"("response_format": {"type": "json_schema", "json_schema": {
      "name": "s", "schema": {"type": "object", "properties": {"x": {"type": "integer"}},
                              "required": ["x"]}}}, )" +
                              std::string(kTools));
  EXPECT_EQ(either["content"], "{\"x\": 1}");
  EXPECT_TRUE(Accepts(call));
  EXPECT_TRUE(Accepts(text));
  EXPECT_FALSE(Accepts("{\"x\": 1}"));
  // Without tools the prompt opens the channel.
  engine_.set_reply("{\"x\": 1}");
  EXPECT_EQ(Message(R"("response_format": {"type": "json_object"})")["content"], "{\"x\": 1}");
}

// Marks that are special tokens are read, and do not appear. Their tokens are counted exactly.
TEST_F(ReasoningTest, MarksThatAreSpecialTokens) {
  const MarkTokenizer tags({"<think>", "</think>"});
  model_tokenizer_ = &tags;
  ServeThinkTags();
  engine_.set_reply(tags.Coded(kThinks));
  Json answer = Chat("").json();
  EXPECT_EQ(answer["choices"][0]["message"]["reasoning_content"], "I add.");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "It is 4.");
  // "\nI add.\n", of all tokens: these, two marks, "\n\nIt is 4." and the end.
  EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 8);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 8 + 2 + 10 + 1);
  EXPECT_EQ(Chat(R"("n": 2)").json()["usage"]["completion_tokens_details"]["reasoning_tokens"], 16);

  const MarkTokenizer marks({"<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|return|>",
                             "<|call|>", "<|constrain|>"});
  model_tokenizer_ = &marks;
  ServeHarmony();
  engine_.set_reply(marks.Coded(kHarmonyThinks));
  answer = Chat("").json();
  EXPECT_EQ(answer["choices"][0]["message"]["reasoning_content"], "I add.");
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "It is 4.");
  EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 6);
}

TEST_F(ReasoningTest, EarlierReasoningIsGivenToTheTemplate) {
  ServeThinkTags();
  for (const char* name : {"reasoning_content", "reasoning", "thinking"}) {
    const std::string messages =
        R"([{"role": "assistant", "content": "4.", ")" + std::string(name) + R"(": "I add."}])";
    EXPECT_EQ(Chat("", messages).status, 200);
    EXPECT_EQ(PromptText(), "assistant: [I add.|I add.]4.\nassistant: ") << name;
  }
  EXPECT_EQ(Chat("", R"([{"role": "assistant", "content": "4.", "reasoning_content": null,
                          "reasoning_details": [{}], "reasoning": {"a": 1}}])")
                .status,
            200);
  EXPECT_EQ(PromptText(), "assistant: 4.\nassistant: ");
  // The harmony template takes no text beside a thought before a call.
  const char* call = R"([{"role": "assistant", "content": "I look.", "reasoning": "I add.",
      "tool_calls": [{"id": "c", "type": "function",
                      "function": {"name": "add", "arguments": "{}"}}]}])";
  EXPECT_EQ(Chat("", call).status, 200);
  EXPECT_EQ(PromptText(), "assistant: [I add.|I add.]I look.\nassistant: ");
  ServeHarmony();
  EXPECT_EQ(Chat("", call).status, 200);
  EXPECT_EQ(PromptText(), "assistant: [I add.|I add.]\nassistant: ");
}

TEST_F(ReasoningTest, MistakesNameTheField) {
  ServeThinkTags();
  const std::pair<const char*, const char*> cases[] = {
      {R"("reasoning_effort": "extreme")", "reasoning_effort"},
      {R"("reasoning_effort": 5)", "reasoning_effort"},
      {R"("reasoning_format": "raw")", "reasoning_format"},
      {R"("include_reasoning": "yes")", "include_reasoning"},
      {R"("chat_template_kwargs": [])", "chat_template_kwargs"},
  };
  for (const auto& [fields, param] : cases) {
    const Answer answer = Chat(fields);
    EXPECT_EQ(answer.status, 400) << fields << " " << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << answer.body;
  }
  const Answer answer =
      Chat("", R"([{"role": "assistant", "content": "4.", "reasoning_content": 5}])");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "messages[0].reasoning_content");
}

TEST_F(ReasoningTest, Qwen3sTemplate) {
  SKEIN_REQUIRE_SHARED();
  auto qwen3 = ChatTemplate::Load(SharedDir() + "/tokenizers/qwen3");
  ASSERT_TRUE(qwen3.ok()) << qwen3.status().message();
  Serve((*qwen3)->source(), ReasoningStyle::kThinkTags);
  engine_.set_reply(kThinks);
  EXPECT_EQ(Message()["reasoning_content"], "I add.");
  EXPECT_EQ(Message()["content"], "It is 4.");
  EXPECT_EQ(Message(R"("reasoning_effort": "none")")["content"], kThinks);
  EXPECT_TRUE(PromptText().ends_with("<think>\n\n</think>\n\n"));
  EXPECT_EQ(Chat("", R"([{"role": "user", "content": "2+2?"},
                         {"role": "assistant", "content": "4.", "reasoning_content": "I add."}])")
                .status,
            200);
  EXPECT_NE(PromptText().find("<think>\nI add.\n</think>\n\n4."), std::string::npos)
      << PromptText();
}

TEST(ReasoningStyleTest, TemplatesSayHowTheirModelsReason) {
  const auto style = [](const std::string& source) {
    return DetectReasoningStyle(*Parsed(source));
  };
  EXPECT_EQ(style("{{ messages[0].content }}"), ReasoningStyle::kNone);
  EXPECT_EQ(style("{{ messages[0].content.split('</think>')[-1] }}"), ReasoningStyle::kThinkTags);
  EXPECT_EQ(style("<|channel|>analysis<|message|>{{ messages[0].thinking }}"),
            ReasoningStyle::kHarmony);
  EXPECT_EQ(ThoughtsAtEnd("a<think>\n"), PromptThoughts::kOpen);
  EXPECT_EQ(ThoughtsAtEnd("a<think>\n\n</think>\n\n"), PromptThoughts::kClosed);
  EXPECT_EQ(ThoughtsAtEnd("a<think>b"), PromptThoughts::kNone);
  EXPECT_EQ(ThoughtsAtEnd(" "), PromptThoughts::kNone);
}

}  // namespace
}  // namespace skein::testing
