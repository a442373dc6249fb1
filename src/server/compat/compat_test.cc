#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

class CompatTest : public ServerTest {
 protected:
  std::string PromptText() const { return tokenizer_.Decode(engine_.last_request().prompt, true); }
};

TEST_F(CompatTest, AMessageOfAnthropics) {
  Start();
  const Answer answer = Post("/v1/messages", R"({"model": "fake", "max_tokens": 50,
      "system": [{"type": "text", "text": "Be kind."}], "stop_sequences": ["wor"],
      "metadata": {"user_id": "u"}, "messages": [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."},
          {"type": "text", "text": "I add."}, {"type": "tool_use", "id": "c", "name": "add",
           "input": {"a": 2}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "4"},
          {"type": "text", "text": "Well?"}]}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(PromptText(),
            "system: Be kind.\nuser: 2+2?\nassistant: I add.\ntool: 4\nuser: Well?\nassistant: ");
  EXPECT_EQ(engine_.last_request().user, "u");
  const Json json = answer.json();
  EXPECT_EQ(json["content"].dump(), R"([{"type":"text","text":"Hello, "}])");
  EXPECT_EQ(json["stop_reason"], "stop_sequence");
  EXPECT_EQ(json["stop_sequence"], "wor");
  const Answer missing =
      Post("/v1/messages", R"({"messages": [{"role": "user", "content": "x"}]})");
  EXPECT_EQ(missing.status, 400);
  EXPECT_EQ(missing.json()["error"]["type"], "invalid_request_error");
  EXPECT_EQ(Post("/v1/messages/count_tokens", R"({"messages": [{"role": "user", "content": "x"}]})")
                .json()["input_tokens"],
            19);
}

TEST_F(CompatTest, AStreamOfAnthropicsHasItsBlocks) {
  Start();
  engine_.set_reply("See.<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}</tool_call>");
  const Answer answer = Post("/v1/messages", R"({"max_tokens": 99, "stream": true,
      "tools": [{"name": "add", "input_schema": {"type": "object"}}],
      "messages": [{"role": "user", "content": "x"}]})");
  std::vector<std::string> types;
  std::string input;
  const std::string kData = "data: ";
  for (size_t at = answer.body.find(kData); at != std::string::npos;
       at = answer.body.find(kData, at + 1)) {
    const size_t begin = at + kData.size();
    const Json json = *ParseJson(answer.body.substr(begin, answer.body.find('\n', at) - begin));
    if (types.empty() || types.back() != json["type"]) types.push_back(json["type"]);
    if (json["type"] == "content_block_delta" && json["index"] == 1) {
      input += json["delta"]["partial_json"];
    }
    if (json["type"] == "message_delta") {
      EXPECT_EQ(json["delta"]["stop_reason"], "tool_use");
    }
  }
  EXPECT_EQ(types, (std::vector<std::string>{
                       "message_start", "content_block_start", "content_block_delta",
                       "content_block_stop", "content_block_start", "content_block_delta",
                       "content_block_stop", "message_delta", "message_stop"}));
  EXPECT_EQ(input, "{\"a\": 1}");
}

TEST_F(CompatTest, AResponse) {
  Start();
  const Answer answer = Post("/v1/responses", R"({"instructions": "Be kind.", "input": [
      {"role": "user", "content": [{"type": "input_text", "text": "2+2?"}]},
      {"type": "reasoning", "summary": []},
      {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c", "output": "4"}], "max_output_tokens": 5})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(PromptText(), "system: Be kind.\nuser: 2+2?\nassistant: \ntool: 4\nassistant: ");
  const Json json = answer.json();
  EXPECT_EQ(json["output"][0]["content"][0]["text"], "Hello");
  EXPECT_EQ(json["status"], "incomplete");
  EXPECT_EQ(json["usage"]["output_tokens"], 5);
  for (const char* fields : {R"("input": 5)", R"("input": [5])", R"("input": [{"type": "image"}])",
                             R"("input": "x", "previous_response_id": "r")"}) {
    EXPECT_EQ(Post("/v1/responses", "{" + std::string(fields) + "}").status, 400) << fields;
  }
}

TEST_F(CompatTest, LinesOfOllamas) {
  Start();
  const Answer answer = Post("/api/chat", R"({"model": "fake:latest", "options": {"seed": 3,
      "num_predict": 4, "repeat_penalty": 1.5}, "messages": [{"role": "user", "content": "x"}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(engine_.last_request().generate().sampling.seed, 3u);
  EXPECT_EQ(engine_.last_request().generate().sampling.repetition_penalty, 1.5f);
  std::string text;
  Json last;
  for (size_t begin = 0; begin < answer.body.size();) {
    const size_t end = answer.body.find('\n', begin);
    last = *ParseJson(answer.body.substr(begin, end - begin));
    EXPECT_EQ(last["model"], "fake:latest");
    text += last["message"]["content"].get<std::string>();
    begin = end + 1;
  }
  EXPECT_EQ(text, "Hell");
  EXPECT_EQ(last["done_reason"], "length");
  EXPECT_EQ(last["eval_count"], 4);
  const Answer raw = Post("/api/generate", R"({"prompt": "Hi", "raw": true, "stream": false})");
  EXPECT_EQ(raw.json()["response"], "Hello, world") << raw.body;
  EXPECT_EQ(PromptText(), "Hi");
  EXPECT_EQ(Post("/api/chat", R"({"model": "other", "messages": [{"role": "user"}]})")
                .json()
                .contains("error"),
            true);
  EXPECT_EQ(Get("/api/tags").json()["models"][0]["name"], "fake");
  EXPECT_EQ(Get("/api/version").status, 200);
}

// Serves a model that thinks, whose template shows earlier thoughts and switches.
class ThinkingCompatTest : public CompatTest {
 protected:
  void Serve() {
    auto parsed = ChatTemplate::Parse(
        "{% for m in messages %}{{ m.role }}: {% if m.reasoning_content %}[{{ m.reasoning_content "
        "}}]{% endif %}{{ m.content }}\n{% endfor %}{{ enable_thinking }} {{ reasoning_effort }}");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    template_ = std::move(parsed).value();
    chat_template_ = template_.get();
    reasoning_.style = ReasoningStyle::kThinkTags;
    Start();
    engine_.set_reply("<think>\nI add.\n</think>\n\nIt is 4.");
  }
  // The data of a stream's events.
  static std::vector<Json> Events(const Answer& answer) {
    std::vector<Json> events;
    const std::string kData = "data: ";
    for (size_t at = answer.body.find(kData); at != std::string::npos;
         at = answer.body.find(kData, at + 1)) {
      const size_t begin = at + kData.size();
      events.push_back(
          *ParseJson(answer.body.substr(begin, answer.body.find('\n', begin) - begin)));
    }
    return events;
  }

 private:
  std::unique_ptr<ChatTemplate> template_;
};

TEST_F(ThinkingCompatTest, Anthropics) {
  Serve();
  const std::string kBody = R"({"max_tokens": 99, "messages": [{"role": "user", "content": "2+2?"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "4?"}]}, {"role": "user", "content": "Well?"}])";
  const Json json = Post("/v1/messages", kBody + "}").json();
  EXPECT_EQ(json["content"].dump(), R"([{"type":"thinking","thinking":"I add.","signature":""},)"
                                    R"({"type":"text","text":"It is 4."}])");
  EXPECT_EQ(PromptText(), "user: 2+2?\nassistant: [Hm.]4?\nuser: Well?\n ");
  std::string types;
  std::string thinking;
  for (const Json& event : Events(Post("/v1/messages", kBody + R"(, "stream": true})"))) {
    const std::string type = event["type"];
    if (type == "content_block_start") types += event["content_block"]["type"].get<std::string>();
    if (type == "content_block_delta" && event["delta"]["type"] != "text_delta") {
      EXPECT_EQ(event["index"], 0);
      thinking += event["delta"].value("thinking", "");
    }
    if (type == "content_block_stop") types += ";";
  }
  EXPECT_EQ(types, "thinking;text;");
  EXPECT_EQ(thinking, "I add.");
  EXPECT_EQ(Post("/v1/messages", kBody + R"(, "thinking": {"type": "disabled"}})").status, 200);
  EXPECT_TRUE(PromptText().ends_with("False ")) << PromptText();
  const char* enabled = R"(, "thinking": {"type": "enabled", "budget_tokens": 1024}})";
  EXPECT_EQ(Post("/v1/messages", kBody + enabled).status, 200);
  EXPECT_TRUE(PromptText().ends_with("True ")) << PromptText();
  EXPECT_EQ(Post("/v1/messages", kBody + R"(, "thinking": {"type": "much"}})").status, 400);
  // A budget that ends in the thought.
  const Json cut = Post("/v1/messages", R"({"max_tokens": 12,
      "messages": [{"role": "user", "content": "2+2?"}]})")
                       .json();
  EXPECT_EQ(cut["content"].size(), 1u);
  EXPECT_EQ(cut["content"][0]["thinking"], "I ad");
  EXPECT_EQ(cut["stop_reason"], "max_tokens");
}

TEST_F(ThinkingCompatTest, Responses) {
  Serve();
  const std::string kBody = R"({"input": [{"role": "user", "content": "2+2?"},
      {"type": "reasoning", "id": "rs", "summary": [],
       "content": [{"type": "reasoning_text", "text": "Hm."}]},
      {"role": "assistant", "content": [{"type": "output_text", "text": "4?"}]},
      {"role": "user", "content": "Well?"}], "reasoning": {"effort": "low"})";
  const Json json = Post("/v1/responses", kBody + "}").json();
  ASSERT_EQ(json["output"].size(), 2u) << json.dump();
  const Json& reasoning = json["output"][0];
  EXPECT_EQ(reasoning["type"], "reasoning");
  EXPECT_EQ(reasoning["summary"], Json::array());
  EXPECT_EQ(reasoning["content"].dump(), R"([{"type":"reasoning_text","text":"I add."}])");
  EXPECT_EQ(json["output"][1]["content"][0]["text"], "It is 4.");
  EXPECT_EQ(json["reasoning"]["effort"], "low");
  EXPECT_EQ(PromptText(), "user: 2+2?\nassistant: [Hm.]4?\nuser: Well?\nTrue low");
  std::vector<std::string> types;
  std::string text;
  for (const Json& event : Events(Post("/v1/responses", kBody + R"(, "stream": true})"))) {
    if (event["type"] == "response.reasoning_text.delta") {
      EXPECT_EQ(event["output_index"], 0);
      EXPECT_EQ(event["content_index"], 0);
      text += event["delta"].get<std::string>();
    }
    if (types.empty() || types.back() != event["type"]) types.push_back(event["type"]);
  }
  EXPECT_EQ(text, "I add.");
  EXPECT_EQ(types, (std::vector<std::string>{
                       "response.created", "response.in_progress", "response.output_item.added",
                       "response.content_part.added", "response.reasoning_text.delta",
                       "response.reasoning_text.done", "response.content_part.done",
                       "response.output_item.done", "response.output_item.added",
                       "response.content_part.added", "response.output_text.delta",
                       "response.output_text.done", "response.content_part.done",
                       "response.output_item.done", "response.completed"}));
  EXPECT_EQ(Post("/v1/responses", R"({"input": [
      {"role": "assistant", "content": "I look."},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
      {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Oh."}]},
      {"role": "user", "content": "Well?"}, {"role": "assistant", "content": "4"}]})")
                .status,
            200);
  EXPECT_EQ(PromptText(), "assistant: [Hm.]I look.\nuser: Well?\nassistant: 4\n ");
  for (const char* fields : {R"("reasoning": 5)", R"("reasoning": {"effort": "extreme"})"}) {
    EXPECT_EQ(Post("/v1/responses", R"({"input": "x", )" + std::string(fields) + "}").status, 400);
  }
  EXPECT_EQ(Post("/v1/responses", R"({"input": "x", "reasoning": null})").status, 200);
}

TEST_F(ThinkingCompatTest, Ollamas) {
  Serve();
  const std::string kBody = R"({"messages": [{"role": "user", "content": "2+2?"},
      {"role": "assistant", "thinking": "Hm.", "content": "4?"}])";
  const Json json = Post("/api/chat", kBody + R"(, "stream": false})").json();
  EXPECT_EQ(json["message"]["thinking"], "I add.");
  EXPECT_EQ(json["message"]["content"], "It is 4.");
  EXPECT_EQ(PromptText(), "user: 2+2?\nassistant: [Hm.]4?\n ");
  const Answer stream = Post("/api/chat", kBody + R"(, "think": true})");
  std::string thinking;
  std::string content;
  for (size_t begin = 0; begin < stream.body.size();) {
    const size_t end = stream.body.find('\n', begin);
    const Json message = (*ParseJson(stream.body.substr(begin, end - begin)))["message"];
    thinking += message.value("thinking", "");
    content += message["content"].get<std::string>();
    begin = end + 1;
  }
  EXPECT_EQ(thinking, "I add.");
  EXPECT_EQ(content, "It is 4.");
  EXPECT_TRUE(PromptText().ends_with("True ")) << PromptText();
  EXPECT_EQ(Post("/api/chat", kBody + R"(, "think": "high"})").status, 200);
  EXPECT_TRUE(PromptText().ends_with("True high")) << PromptText();
  EXPECT_EQ(Post("/api/chat", kBody + R"(, "think": "hard"})").status, 400);
  const Json generated =
      Post("/api/generate", R"({"prompt": "2+2?", "stream": false, "think": false})").json();
  EXPECT_EQ(generated["thinking"], "I add.");
  EXPECT_EQ(generated["response"], "It is 4.");
  EXPECT_TRUE(PromptText().ends_with("False ")) << PromptText();
  const Json shown = Post("/api/show", R"({"model": "fake"})").json();
  EXPECT_EQ(shown["capabilities"].dump(), R"(["completion","tools","thinking"])");
  const Json raw = Post("/api/generate", R"({"prompt": "x", "raw": true, "stream": false})").json();
  EXPECT_TRUE(raw["response"].get<std::string>().starts_with("<think>"));
}

TEST_F(CompatTest, WrongTypesAreErrorsAndNoFailures) {
  Start();
  const std::pair<const char*, const char*> kCases[] = {
      {"/v1/messages", R"({"max_tokens": 5, "messages": [{"role": 5, "content": {}}]})"},
      {"/v1/messages", R"({"max_tokens": 5, "messages": [{"role": "user", "content":
          [{"type": "tool_result", "tool_use_id": 5, "content": {"a": 1}}]}]})"},
      {"/v1/messages", R"({"max_tokens": 5, "tools": [5], "messages": [{"role": "user"}]})"},
      {"/v1/messages", R"({"max_tokens": 5, "tool_choice": {"type": 5}, "messages": [
          {"role": "user", "content": "x"}]})"},
      {"/v1/responses", R"({"input": [{"type": 5, "role": {}}]})"},
      {"/v1/responses", R"({"input": "x", "text": {"format": 5}})"},
      {"/v1/responses", R"({"input": "x", "tools": [{"type": "function", "name": 5}]})"},
      {"/api/chat", R"({"messages": [5]})"},
      {"/api/chat", R"({"messages": [{"role": "user", "content": "x"}], "options": 5})"},
      {"/api/chat", R"({"messages": [{"role": "user", "content": "x"}], "format": 5})"},
      {"/api/generate", R"({"prompt": "x", "images": ["a"]})"},
      {"/api/embed", R"({"input": 5})"},
  };
  for (const auto& [path, body] : kCases) {
    EXPECT_EQ(Post(path, body).status, 400) << path << " " << body;
  }
}

TEST_F(CompatTest, AKeyOfAnthropicsClients) {
  ServerConfig config;
  config.api_keys.push_back({.key = "secret"});
  Start(std::move(config));
  const std::string body = R"({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]})";
  EXPECT_EQ(Post("/v1/messages", body).status, 401);
  EXPECT_EQ(Post("/v1/messages", body, {{"x-api-key", "wrong"}}).status, 401);
  EXPECT_EQ(Post("/v1/messages", body, {{"x-api-key", "secret"}}).status, 200);
  EXPECT_EQ(Post("/v1/messages", body, {{"Authorization", "Bearer secret"}}).status, 200);
}

}  // namespace
}  // namespace skein::testing
