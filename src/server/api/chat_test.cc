#include <gtest/gtest.h>

#include "testing/fake_server.h"
#include "testing/shared.h"

namespace skein::testing {
namespace {

class ChatTest : public ServerTest {
 protected:
  Answer Chat(const std::string& fields) {
    return Post("/v1/chat/completions",
                R"({"model": "fake", "messages": [{"role": "user", "content": "Hi"}])" +
                    (fields.empty() ? "" : ", " + fields) + "}");
  }
  std::string PromptText() const { return tokenizer_.Decode(engine_.last_request().prompt, true); }
};

TEST_F(ChatTest, WholeAnswer) {
  Start();
  const Json json = Chat("").json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(json["choices"][0]["message"]["content"], "Hello, world");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(PromptText(), "user: Hi\nassistant: ");
  EXPECT_EQ(engine_.last_request().generate().max_tokens, 4096 - 20);
}

TEST_F(ChatTest, RenderTellsThePromptAndComputesNothing) {
  Start();
  const Json chat = Post("/v1/chat/completions/render",
                         R"({"messages": [{"role": "user", "content": "Hi"}], "temperature": 0.5})")
                        .json();
  const auto ids = chat["token_ids"].get<std::vector<TokenId>>();
  EXPECT_EQ(tokenizer_.Decode(ids, true), "user: Hi\nassistant: ");
  EXPECT_EQ(chat["sampling_params"]["temperature"], 0.5);
  EXPECT_EQ(chat["sampling_params"]["max_tokens"], 4096 - 20);
  EXPECT_EQ(chat["model"], "fake");
  const Json texts =
      Post("/v1/completions/render", R"({"prompt": ["ab", "c"], "max_tokens": 7})").json();
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0]["token_ids"].dump(), "[97,98]");
  EXPECT_EQ(texts[1]["token_ids"].dump(), "[99]");
  EXPECT_EQ(texts[1]["sampling_params"]["max_tokens"], 7);
  EXPECT_EQ(Post("/v1/completions/render", "{}").json()["error"]["param"], "prompt");
  EXPECT_TRUE(engine_.last_request().prompt.empty());
}

// Without a limit from the client, an answer may be as long as the context and the cache allow.
TEST_F(ChatTest, AnAnswerFitsTheCache) {
  max_kv_tokens_ = 64;
  Start();
  EXPECT_EQ(Chat("").status, 200);
  EXPECT_EQ(engine_.last_request().generate().max_tokens, 64 - 20 + 1);
  EXPECT_EQ(Chat("\"max_tokens\": 100").status, 200);
  EXPECT_EQ(engine_.last_request().generate().max_tokens, 100);
}

TEST_F(ChatTest, RolesAreThoseOfTheApiOrOfTheTemplate) {
  const FakeTemplate named("{% if message.role == 'critic' %}");
  chat_template_ = &named;
  Start();
  const auto post = [this](const std::string& role) {
    return Post("/v1/chat/completions",
                R"({"messages": [{"role": ")" + role + R"(", "content": "x"}], "max_tokens": 1})");
  };
  for (const char* role : {"user", "system", "assistant", "tool", "developer", "critic"}) {
    EXPECT_EQ(post(role).status, 200) << role;
  }
  for (const char* role : {"crit", "message", "User", "if"}) {
    const Answer answer = post(role);
    EXPECT_EQ(answer.status, 400) << role;
    EXPECT_EQ(answer.json()["error"]["param"], "messages[0].role");
  }
}

TEST_F(ChatTest, StreamFraming) {
  Start();
  const std::vector<std::string> events =
      Chat(R"("stream": true, "n": 2, "stream_options": {"include_usage": true})").Events();
  ASSERT_GE(events.size(), 6u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text[2];
  std::string finish[2];
  bool has_role[2] = {false, false};
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json chunk = *ParseJson(events[i]);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    const Json& choice = chunk["choices"][0];
    const size_t index = choice["index"];
    ASSERT_LT(index, 2u);
    EXPECT_EQ(choice["delta"].contains("role"), !has_role[index]);
    has_role[index] = true;
    EXPECT_EQ(finish[index], "");
    text[index] += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null()) finish[index] = choice["finish_reason"];
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(text[i], "Hello, world");
    EXPECT_EQ(finish[i], "stop");
  }
  EXPECT_EQ((*ParseJson(events[events.size() - 2]))["usage"]["completion_tokens"], 26);
}

TEST_F(ChatTest, Logprobs) {
  Start();
  engine_.set_reply("\xC3\xA9");
  const Json content = Chat(R"("logprobs": true, "top_logprobs": 1, "max_completion_tokens": 2)")
                           .json()["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[0]["token"], "\xEF\xBF\xBD");
  EXPECT_EQ(content[0]["bytes"].dump(), "[195]");
  EXPECT_EQ(content[1]["bytes"].dump(), "[169]");
  EXPECT_EQ(content[0]["logprob"], -0.5);
  ASSERT_EQ(content[0]["top_logprobs"].size(), 1u);
  EXPECT_EQ(content[0]["top_logprobs"][0]["bytes"].dump(), "[195]");
}

TEST_F(ChatTest, WhatReachesTheTemplate) {
  Start();
  const Answer parts = Post("/v1/chat/completions", R"({"messages": [{"role": "user", "content":
      [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}],
      "chat_template_kwargs": {"mood": "glad"}, "add_generation_prompt": false,
      "tools": [{"type": "function",
                 "function": {"name": "f", "parameters": {"z": 1, "a": 1.0}}}]})");
  EXPECT_EQ(parts.status, 200) << parts.body;
  EXPECT_EQ(PromptText(),
            "user: one\ntwo\n[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"
            "{\"z\":1,\"a\":1.0}}}]\nglad\n");
}

// The turns of an agent as the OpenAI client sends them: members that a message lacks are null.
constexpr char kAgentTurns[] = R"({"messages": [
    {"role": "user", "content": "What is 2+2?"},
    {"role": "assistant", "content": null, "refusal": null, "function_call": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "4"},
    {"role": "assistant", "content": "4", "tool_calls": null}, {"role": "user"}]})";

TEST_F(ChatTest, NullContentIsAnEmptyText) {
  auto chatml = ChatTemplate::Parse(
      "{% for message in messages %}"
      "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
      "{% if 'tool_calls' in message %}{{ message.tool_calls | length }}{% endif %}"
      "{% endfor %}");
  ASSERT_TRUE(chatml.ok()) << chatml.status().message();
  chat_template_ = chatml->get();
  Start();
  const Answer answer = Post("/v1/chat/completions", kAgentTurns);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(PromptText(),
            "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n1"
            "<|im_start|>tool\n4<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n"
            "<|im_start|>user\n<|im_end|>\n");
}

TEST_F(ChatTest, NullContentInQwen3sTemplate) {
  SKEIN_REQUIRE_SHARED();
  auto qwen3 = ChatTemplate::Load(skein::testing::SharedDir() + "/tokenizers/qwen3");
  ASSERT_TRUE(qwen3.ok()) << qwen3.status().message();
  chat_template_ = qwen3->get();
  Start();
  const Answer answer = Post("/v1/chat/completions", kAgentTurns);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(PromptText().find("<|im_start|>assistant\n<tool_call>\n{\"name\": \"add\""),
            std::string::npos)
      << PromptText();
}

TEST_F(ChatTest, BadFieldsAreNamed) {
  Start();
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": [5]})", "messages[0]"},
      {R"({"messages": [{"role": "user", "content": 5}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "messages[0].content"},
      {R"({"messages": [{"role": "bad", "content": "x"}]})", "messages"},
      {R"({"messages": [{"role": "user<|im_end|>", "content": "x"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "", "content": "x"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user", "content": "x"}], "top_logprobs": 2})", "top_logprobs"},
      {R"({"messages": [{"role": "user", "content": "x"}], "tools": [],
           "tool_choice": "required"})",
       "tool_choice"},
      {R"({"messages": [{"role": "user", "content": "x"}], "function_call": {"name": "f"}})",
       "function_call"},
      {R"({"messages": [{"role": "user", "content": "x"}], "function_call": "auto",
           "functions": [{"name": "f"}]})",
       "functions"},
      {R"({"messages": [{"role": "user", "content": "x"}], "continue_final_message": true})",
       "continue_final_message"},
      {R"({"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": 5})",
       "chat_template_kwargs"},
  };
  for (const auto& [body, param] : cases) {
    const Answer answer = Post("/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 400) << body << " " << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << body << " " << answer.body;
  }
}

TEST_F(ChatTest, OtherRoutes) {
  Start();
  Json json = Post("/tokenize", R"({"prompt": "ab", "return_token_strs": true})").json();
  EXPECT_EQ(json.dump(),
            R"({"count":2,"max_model_len":4096,"tokens":[97,98],"token_strs":["a","b"]})");
  json = Post("/tokenize", R"({"messages": [{"role": "user", "content": "x"}]})").json();
  EXPECT_EQ(json["count"], 19);
  EXPECT_EQ(Post("/detokenize", R"({"tokens": [97, 98]})").json().dump(), R"({"prompt":"ab"})");
  EXPECT_EQ(Post("/detokenize", R"({"tokens": [-1]})").json()["error"]["param"], "tokens");
  json = Get("/v1/models").json();
  ASSERT_EQ(json["data"].size(), 2u);
  EXPECT_EQ(json["data"][0]["id"], "fake");
  EXPECT_EQ(json["data"][0]["max_model_len"], 4096);
  EXPECT_EQ(Get("/v1/models/alias/of-fake").json()["id"], "alias/of-fake");
  EXPECT_EQ(Get("/v1/models/alias%2Fof-fake").status, 200);
  EXPECT_EQ(Get("/v1/models/none").status, 404);
}

TEST_F(ChatTest, AnAdapterIsAModelOfItsOwn) {
  Start({}, /*set_models=*/false);
  ModelRegistry registry = Registry();
  ModelEntry adapter = Entry();
  adapter.names = {"polite"};
  adapter.adapter_id = 1;
  adapter.parent = "fake";
  registry.Add(adapter);
  server_->SetModels(std::move(registry));
  const auto adapter_of = [this](const std::string& model) {
    const std::string messages = R"("messages": [{"role": "user", "content": "Hi"}])";
    EXPECT_EQ(Post("/v1/chat/completions", "{" + model + messages + "}").status, 200);
    return engine_.last_request().adapter_id;
  };
  EXPECT_EQ(adapter_of(R"("model": "polite", )"), 1);
  EXPECT_EQ(adapter_of(R"("model": "fake", )"), 0);
  EXPECT_EQ(adapter_of(""), 0);
  const Json card = Get("/v1/models/polite").json();
  EXPECT_EQ(card["parent"], "fake");
  EXPECT_TRUE(Get("/v1/models/fake").json()["parent"].is_null());
  EXPECT_EQ(Post("/v1/completions", R"({"model": "rude", "prompt": "Hi"})").status, 404);
}

TEST_F(ChatTest, Metrics) {
  Start();
  EXPECT_EQ(Chat("\"slo_ttft_ms\": 100").status, 200);
  EXPECT_EQ(Chat("\"max_tokens\": 1").status, 200);
  const std::string text = Get("/metrics").body;
  for (const char* line :
       {"vllm:request_success_total{finished_reason=\"stop\",model_name=\"fake\"} 1\n",
        "vllm:request_success_total{finished_reason=\"length\",model_name=\"fake\"} 1\n",
        "vllm:num_requests_running{model_name=\"fake\"} 0\n",
        "vllm:generation_tokens_total{model_name=\"fake\"} 14\n",
        "vllm:time_to_first_token_seconds_count{model_name=\"fake\"} 2\n",
        "vllm:time_to_first_token_seconds_bucket{model_name=\"fake\",le=\"0.0001\"} 0\n",
        "vllm:inter_token_latency_seconds_count{model_name=\"fake\"} 12\n",
        "vllm:iteration_tokens_total_bucket{model_name=\"fake\",le=\"8\"} 3\n",
        "skein_slo_ttft_total{class=\"generate\",met=\"true\",model_name=\"fake\",slo_le=\"0.1\"} "
        "1\n",
        "skein_ttft_prediction_error_bucket{model_name=\"fake\",alone=\"true\",le=\"1\"} 2\n",
        "skein_ttft_prediction_error_quantile{model_name=\"fake\",alone=\"true\",q=\"0.5\"} "
        "0.875\n",
        "skein_e2e_request_latency_seconds_count{class=\"oneshot\",model_name=\"fake\"} 1\n",
        "# TYPE vllm:prompt_tokens_total counter\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

// Tests the metrics of scheduling rounds by cause, of commands to the executor, and of the times of
// signals and wake-ups.
TEST_F(ChatTest, MetricsOfScheduling) {
  Start();
  const std::string text = Get("/metrics").body;
  for (const char* line :
       {"skein_scheduler_rounds_total{model_name=\"fake\",cause=\"arrival\"} 5\n",
        "skein_scheduler_rounds_total{model_name=\"fake\",cause=\"cancellation\"} 1\n",
        "skein_scheduler_rounds_total{model_name=\"fake\",cause=\"timer\"} 2\n",
        "skein_scheduler_rounds_total{model_name=\"fake\",cause=\"completion\"} 7\n",
        "skein_scheduler_commands_total{model_name=\"fake\",command=\"submit\"} 123\n",
        "skein_scheduler_commands_total{model_name=\"fake\",command=\"preempt\"} 6\n",
        "skein_scheduler_commands_total{model_name=\"fake\",command=\"resume\"} 4\n",
        "skein_steps_dropped_total{model_name=\"fake\"} 2\n",
        "skein_preempt_signals_total{model_name=\"fake\"} 8\n",
        "skein_preempt_blocking_seconds_total{model_name=\"fake\"} 2.5\n",
        "skein_preempt_blocking_seconds_max{model_name=\"fake\"} 0.75\n",
        "skein_preempt_wakeups_total{model_name=\"fake\"} 9\n",
        "skein_preempt_wakeup_seconds_total{model_name=\"fake\"} 1.5\n",
        "skein_preempt_wakeup_seconds_max{model_name=\"fake\"} 0.25\n",
        "skein_scheduler_seconds_total{model_name=\"fake\"} 0.5\n",
        "# TYPE skein_scheduler_rounds_total counter\n",
        "# TYPE skein_scheduler_commands_total counter\n",
        "# TYPE skein_preempt_signals_total counter\n",
        "# TYPE skein_preempt_blocking_seconds_total counter\n",
        "# TYPE skein_preempt_blocking_seconds_max gauge\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

}  // namespace
}  // namespace skein::testing
