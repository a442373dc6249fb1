#include <gtest/gtest.h>

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
