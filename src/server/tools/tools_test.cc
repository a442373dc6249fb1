#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "testing/fake_server.h"
#include "testing/shared.h"

namespace skein::testing {
namespace {

class ToolsTest : public ServerTest {
 protected:
  Answer Chat(const std::string& fields,
              const std::string& messages = R"([{"role": "user", "content": "Hi"}])") {
    return Post("/v1/chat/completions", R"({"messages": )" + messages + R"(, "tools": [
      {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters":
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}},
      {"type": "function", "function": {"name": "now"}}])" +
                                            (fields.empty() ? "" : ", " + fields) + "}");
  }
  std::string PromptText() const { return tokenizer_.Decode(engine_.last_request().prompt, true); }
};

constexpr char kCalls[] =
    "Let me see.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 17}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";

TEST_F(ToolsTest, CallsOfAWholeAnswer) {
  Start();
  engine_.set_reply(kCalls);
  const Json choice = Chat("").json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "Let me see.");
  const Json& calls = choice["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["type"], "function");
  EXPECT_EQ(calls[0]["function"]["name"], "add");
  EXPECT_EQ(calls[0]["function"]["arguments"], "{\"a\": 17}");
  EXPECT_EQ(calls[1]["function"]["arguments"], "{}");
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  // Without tools the same text is content.
  const Json plain = Chat(R"("tool_choice": "none")").json()["choices"][0];
  EXPECT_EQ(plain["message"]["content"], kCalls);
  EXPECT_EQ(plain["finish_reason"], "stop");
  EXPECT_FALSE(plain["message"].contains("tool_calls"));
}

TEST_F(ToolsTest, CallsOfAStream) {
  Start();
  engine_.set_reply(kCalls);
  std::string content;
  std::map<int, Json> calls;
  std::string finish;
  for (const std::string& event : Chat(R"("stream": true)").Events()) {
    if (event == "[DONE]") continue;
    const Json choice = (*ParseJson(event))["choices"][0];
    EXPECT_EQ(finish, "");
    if (choice["delta"].contains("content")) content += choice["delta"]["content"];
    for (const Json& delta : choice["delta"].value("tool_calls", Json::array())) {
      Json& call = calls[delta["index"]];
      EXPECT_EQ(call.is_null(), delta.contains("id"));
      if (call.is_null()) {
        call = delta;
      } else {
        call["function"]["arguments"] = call["function"]["arguments"].get<std::string>() +
                                        delta["function"]["arguments"].get<std::string>();
      }
    }
    if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
  }
  EXPECT_EQ(content, "Let me see.");
  EXPECT_EQ(finish, "tool_calls");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["function"]["name"], "add");
  EXPECT_EQ(calls[0]["function"]["arguments"], "{\"a\": 17}");
  EXPECT_EQ(calls[1]["function"]["name"], "now");
}

TEST_F(ToolsTest, ForcedCallsAreConstrained) {
  Start();
  const auto call = [](const char* name, const char* arguments) {
    return std::string("<tool_call>\n{\"name\": \"") + name + "\", \"arguments\": " + arguments +
           "}\n</tool_call>";
  };
  EXPECT_EQ(Chat(R"("tool_choice": "required")").status, 200);
  EXPECT_TRUE(Accepts(call("add", "{\"a\": 5}")));
  EXPECT_TRUE(Accepts(call("add", "{\"a\": 5}") + "\n" + call("now", "{}")));
  EXPECT_FALSE(Accepts(call("add", "{\"b\": 5}")));
  EXPECT_FALSE(Accepts(call("sub", "{\"a\": 5}")));
  EXPECT_FALSE(Accepts("words"));
  EXPECT_EQ(Chat(R"("tool_choice": {"type": "function", "function": {"name": "add"}})").status,
            200);
  EXPECT_TRUE(Accepts(call("add", "{\"a\": 5}")));
  EXPECT_FALSE(Accepts(call("now", "{}")));
  EXPECT_FALSE(Accepts(call("add", "{\"a\": 5}") + "\n" + call("add", "{\"a\": 5}")));
  // A schema together with tools that may be called.
  EXPECT_EQ(Chat(R"("response_format": {"type": "json_object"})").status, 200);
  EXPECT_TRUE(Accepts("{\"x\": 1}"));
  EXPECT_TRUE(Accepts(call("now", "{}")));
  EXPECT_FALSE(Accepts("words"));
  EXPECT_EQ(Chat("").status, 200);
  EXPECT_EQ(engine_.last_request().generate().grammar, nullptr);
}

TEST_F(ToolsTest, EachStyleIsConstrainedAsItIsWritten) {
  const std::pair<ToolStyle, const char*> kCases[] = {
      {ToolStyle::kSmolLm, R"(<tool_call>[{"name": "add", "arguments": {"a": 1}}]</tool_call>)"},
      {ToolStyle::kLlama3, R"({"name": "add", "parameters": {"a": 1}})"},
      {ToolStyle::kMistral, R"([TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}])"},
      {ToolStyle::kJson, R"({"name": "add", "arguments": {"a": 1}})"},
  };
  for (const auto& [style, text] : kCases) {
    tools_.style = style;
    Start();
    engine_.set_reply(text);
    const Json choice = Chat(R"("tool_choice": "required")").json()["choices"][0];
    EXPECT_TRUE(Accepts(text)) << text;
    EXPECT_EQ(choice["finish_reason"], "tool_calls") << text;
    EXPECT_TRUE(choice["message"]["content"].is_null());
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"a\": 1}");
    const std::string id = choice["message"]["tool_calls"][0]["id"];
    EXPECT_EQ(id.size(), style == ToolStyle::kMistral ? 9u : 21u);
  }
}

TEST_F(ToolsTest, ATemplateWithoutToolsGetsThemInTheMessages) {
  tools_ = {.style = ToolStyle::kSmolLm, .in_template = false};
  Start();
  const char* const kTurns = R"([{"role": "user", "content": "2+2?"},
      {"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "add", "arguments": "{\"a\": 2}"}}]},
      {"role": "tool", "tool_call_id": "c", "content": "4"}])";
  EXPECT_EQ(Chat("", kTurns).status, 200);
  const std::string text = PromptText();
  EXPECT_TRUE(text.starts_with("system: You can call")) << text;
  EXPECT_NE(text.find("\"description\":\"Adds.\""), std::string::npos) << text;
  EXPECT_NE(
      text.find("assistant: <tool_call>[{\"name\":\"add\",\"arguments\":{\"a\":2}}]</tool_call>"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("user: <tool_response>\n4\n</tool_response>"), std::string::npos) << text;
  tools_.style = ToolStyle::kJson;
  Start();
  EXPECT_EQ(Chat("", kTurns).status, 200);
  EXPECT_TRUE(PromptText().starts_with("user: You can call")) << PromptText();
}

TEST_F(ToolsTest, MistakesNameTheField) {
  Start();
  const std::pair<const char*, const char*> kCases[] = {
      {R"("tool_choice": "sometimes")", "tool_choice"},
      {R"("tool_choice": {"type": "function", "function": {"name": "sub"}})", "tool_choice"},
      {R"("tool_choice": "required", "min_tokens": 3)", "min_tokens"},
      {R"("parallel_tool_calls": "no")", "parallel_tool_calls"},
  };
  for (const auto& [fields, param] : kCases) {
    const Answer answer = Chat(fields);
    EXPECT_EQ(answer.status, 400) << fields << " " << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << answer.body;
  }
  const std::pair<const char*, const char*> kTools[] = {
      {"5", "tools"},
      {"[{}]", "tools[0]"},
      {R"([{"type": "function", "function": {}}])", "tools[0].function.name"},
      {R"([{"type": "function", "function": {"name": "f", "parameters": 3}}])",
       "tools[0].function.parameters"},
  };
  for (const auto& [tools, param] : kTools) {
    const Answer answer =
        Post("/v1/chat/completions",
             std::string(R"({"messages": [{"role": "user", "content": "Hi"}], "tools": )") + tools +
                 "}");
    EXPECT_EQ(answer.status, 400) << tools << " " << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << answer.body;
  }
}

// The templates of tests/data have the forms of Qwen, Mistral, Llama and ChatML.
TEST(ToolStyleTest, TemplatesSayHowTheirModelsCall) {
  const auto detect = [](const std::string& name) {
    std::ifstream file(std::string(SKEIN_SOURCE_DIR) + "/tests/data/chat_templates/" + name);
    const std::string source((std::istreambuf_iterator<char>(file)), {});
    auto parsed = ChatTemplate::Parse(source);
    EXPECT_TRUE(parsed.ok()) << name << parsed.status().message();
    return DetectToolFormat(**parsed);
  };
  EXPECT_TRUE(detect("tags.jinja").in_template);
  EXPECT_EQ(detect("tags.jinja").style, ToolStyle::kHermes);
  EXPECT_TRUE(detect("brackets.jinja").in_template);
  EXPECT_EQ(detect("brackets.jinja").style, ToolStyle::kMistral);
  EXPECT_TRUE(detect("headers.jinja").in_template);
  EXPECT_EQ(detect("headers.jinja").style, ToolStyle::kLlama3);
  auto harmony = ChatTemplate::Parse(
      "{% for t in tools %}{{ t.function.parameters.properties | tojson }}{% endfor %}"
      "{% for m in messages %}<|start|>{{ m.role }}{% if m.tool_calls %}{% set f = "
      "m.tool_calls[0].function %} to=functions.{{ f.name }}<|channel|>commentary json<|message|>"
      "{{ f.arguments | tojson }}<|call|>{% else %}<|message|>{{ m.content }}<|end|>{% endif %}"
      "{% endfor %}<|start|>assistant");
  ASSERT_TRUE(harmony.ok()) << harmony.status().message();
  EXPECT_TRUE(DetectToolFormat(**harmony).in_template);
  EXPECT_EQ(DetectToolFormat(**harmony).style, ToolStyle::kHarmony);
  auto chatml = ChatTemplate::Parse(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
  ASSERT_TRUE(chatml.ok());
  EXPECT_FALSE(DetectToolFormat(**chatml).in_template);
  EXPECT_EQ(DetectToolFormat(**chatml).style, ToolStyle::kSmolLm);
}

}  // namespace
}  // namespace skein::testing
