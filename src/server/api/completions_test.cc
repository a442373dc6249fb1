#include <gtest/gtest.h>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

using CompletionsTest = ServerTest;

TEST_F(CompletionsTest, WholeAnswer) {
  Start();
  const Answer answer = Complete(R"("max_tokens": 5)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["model"], "fake");
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("cmpl-"));
  ASSERT_EQ(json["choices"].size(), 1u);
  EXPECT_EQ(json["choices"][0]["text"], "Hello");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"].dump(), R"({"prompt_tokens":2,"completion_tokens":5,"total_tokens":7,)"
                                  R"("prompt_tokens_details":{"cached_tokens":2}})");
}

TEST_F(CompletionsTest, EndTokenIsHiddenAndTellsNoReason) {
  Start();
  const Json choice = Complete(R"("max_tokens": 50)").json()["choices"][0];
  EXPECT_EQ(choice["text"], "Hello, world");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["stop_reason"].is_null());
  const Json shown =
      Complete(
          R"("max_tokens": 50, "include_stop_str_in_output": true, "skip_special_tokens": false)")
          .json()["choices"][0];
  EXPECT_EQ(shown["text"], "Hello, world<eos>");
  const Json ignored = Complete(R"("max_tokens": 15, "ignore_eos": true)").json()["choices"][0];
  EXPECT_EQ(ignored["text"], "Hello, worldHe");
  EXPECT_EQ(ignored["finish_reason"], "length");
}

TEST_F(CompletionsTest, StopStringsAndStopTokens) {
  Start();
  Json choice = Complete(R"("max_tokens": 50000000, "ignore_eos": true, "stop": ["zzz", "lo, w"])")
                    .json()["choices"][0];
  EXPECT_EQ(choice["text"], "Hel");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], "lo, w");
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
  EXPECT_EQ(engine_.num_samples_cancelled(), 1);
  choice = Complete(R"("max_tokens": 50, "stop": "lo", "include_stop_str_in_output": true)")
               .json()["choices"][0];
  EXPECT_EQ(choice["text"], "Hello");
  choice = Complete(R"("max_tokens": 50, "stop_token_ids": [44])").json()["choices"][0];
  EXPECT_EQ(choice["text"], "Hello");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], 44);
  choice = Complete(R"("max_tokens": 20, "ignore_eos": true, "stop": "o", "min_tokens": 6)")
               .json()["choices"][0];
  EXPECT_EQ(choice["text"], "Hello, w");
}

TEST_F(CompletionsTest, PromptForms) {
  Start();
  const auto texts = [&](const std::string& prompt) {
    const Json json = Post("/v1/completions",
                           R"({"echo": true, "max_tokens": 2, "n": 2, "prompt": )" + prompt + "}")
                          .json();
    std::string all;
    for (size_t i = 0; i < json["choices"].size(); ++i) {
      EXPECT_EQ(json["choices"][i]["index"], i);
      all += json["choices"][i]["text"].get<std::string>() + "|";
    }
    return all;
  };
  EXPECT_EQ(texts(R"("ab")"), "abHe|abHe|");
  EXPECT_EQ(texts(R"(["ab", "c"])"), "abHe|abHe|cHe|cHe|");
  EXPECT_EQ(texts("[97, 98]"), "abHe|abHe|");
  EXPECT_EQ(texts("[[97], [98, 99]]"), "aHe|aHe|bcHe|bcHe|");
}

TEST_F(CompletionsTest, Logprobs) {
  Start();
  engine_.set_reply("a\xC3\xA9");
  const Json choice =
      Complete(R"("max_tokens": 3, "logprobs": 2, "return_token_ids": true)").json()["choices"][0];
  EXPECT_EQ(choice["text"], "a\xC3\xA9");
  const Json& logprobs = choice["logprobs"];
  EXPECT_EQ(logprobs["tokens"].dump(), R"(["a","bytes:\\xc3","bytes:\\xa9"])");
  EXPECT_EQ(logprobs["text_offset"].dump(), "[0,1,2]");
  EXPECT_EQ(logprobs["token_logprobs"].dump(), "[-0.5,-0.5,-0.5]");
  EXPECT_EQ(logprobs["top_logprobs"][0].dump(), R"({"a":-0.5,"B":-1.5})");
  EXPECT_EQ(choice["token_ids"].dump(), "[97,195,169]");
  EXPECT_EQ(choice["prompt_token_ids"].dump(), "[72,105]");
  // The third token is the end token. The text shows it only on request.
  engine_.set_reply("ab");
  const std::string going_on = R"("max_tokens": 5, "logprobs": 0, "ignore_eos": true)";
  Json longer = Complete(going_on).json()["choices"][0];
  EXPECT_EQ(longer["text"], "abab");
  EXPECT_EQ(longer["logprobs"]["text_offset"].dump(), "[0,1,2,2,3]");
  longer = Complete(going_on + R"(, "skip_special_tokens": false)").json()["choices"][0];
  EXPECT_EQ(longer["text"], "ab<eos>ab");
  EXPECT_EQ(longer["logprobs"]["text_offset"].dump(), "[0,1,2,7,8]");
  const Json ids = Complete(R"("max_tokens": 1, "logprobs": 0, "return_tokens_as_token_ids": true)")
                       .json()["choices"][0]["logprobs"];
  EXPECT_EQ(ids["tokens"].dump(), R"(["token_id:97"])");
}

TEST_F(CompletionsTest, StreamFraming) {
  Start();
  engine_.set_reply("h\xC3\xA9!");
  const Answer answer = Complete(
      R"("max_tokens": 50, "stream": true, "echo": true,
         "stream_options": {"include_usage": true})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.Field("Content-Type").starts_with("text/event-stream"));
  const std::vector<std::string> events = answer.Events();
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json chunk = *ParseJson(events[i]);
    EXPECT_EQ(chunk["choices"].size(), 1u);
    EXPECT_TRUE(chunk["usage"].is_null());
    const bool last = i + 3 == events.size();
    EXPECT_EQ(chunk["choices"][0]["finish_reason"].dump(), last ? "\"stop\"" : "null");
    text += chunk["choices"][0]["text"];
  }
  EXPECT_EQ(text, "Hih\xC3\xA9!");
  const Json usage = *ParseJson(events[events.size() - 2]);
  EXPECT_EQ(usage["choices"].size(), 0u);
  EXPECT_EQ(usage["usage"]["completion_tokens"], 5);
}

TEST_F(CompletionsTest, FieldsReachTheEngine) {
  Start();
  const Answer answer = Complete(
      R"("max_tokens": 3, "temperature": 0.5, "top_p": 0.25, "top_k": 7, "min_p": 0.125, "seed": -1,
         "repetition_penalty": 1.5, "presence_penalty": -2, "frequency_penalty": 2, "n": 2,
         "logit_bias": {"65": -100, "66": 1.5}, "allowed_token_ids": [66, 65, 66], "min_tokens": 2,
         "priority": -3, "user": "me", "slo_ttft_ms": 1.5, "slo_tpot_ms": 20, "cache_salt": "x",
         "unknown": {"is": "ignored"}, "stop_token_ids": [9])");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Request request = engine_.last_request();
  const SamplingParams& sampling = request.generate().sampling;
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_p, 0.25f);
  EXPECT_EQ(sampling.top_k, 7);
  EXPECT_EQ(sampling.min_p, 0.125f);
  EXPECT_EQ(sampling.seed, ~uint64_t{0});
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.presence_penalty, -2);
  EXPECT_EQ(sampling.frequency_penalty, 2);
  EXPECT_EQ(sampling.logit_bias, (std::vector<std::pair<TokenId, float>>{{65, -100}, {66, 1.5}}));
  EXPECT_EQ(sampling.allowed_token_ids, (std::vector<TokenId>{65, 66}));
  EXPECT_EQ(request.generate().num_samples, 2);
  EXPECT_EQ(request.generate().min_tokens, 2);
  EXPECT_EQ(request.generate().stop_token_ids, (std::vector<TokenId>{9, kFakeEos}));
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.user, "me");
  EXPECT_EQ(request.slo_ttft_us, 1500);
  EXPECT_EQ(request.slo_tpot_us, 20000);
  EXPECT_NE(request.cache_salt, 0u);
}

TEST_F(CompletionsTest, BadFieldsAreNamed) {
  Start();
  const std::pair<const char*, const char*> cases[] = {
      {R"("temperature": 3.5)", "temperature"},
      {R"("temperature": "hot")", "temperature"},
      {R"("top_p": 0)", "top_p"},
      {R"("top_k": -2)", "top_k"},
      {R"("min_p": 1.5)", "min_p"},
      {R"("n": 0)", "n"},
      {R"("n": 9)", "n"},
      {R"("n": 1.5)", "n"},
      {R"("max_tokens": -1)", "max_tokens"},
      {R"("max_tokens": 1e99)", "max_tokens"},
      {R"("logprobs": 6)", "logprobs"},
      {R"("logprobs": true)", "logprobs"},
      {R"("repetition_penalty": 0)", "repetition_penalty"},
      {R"("presence_penalty": 2.5)", "presence_penalty"},
      {R"("logit_bias": {"x": 1})", "logit_bias"},
      {R"("logit_bias": {"5": 101})", "logit_bias"},
      {R"("logit_bias": {"257": 1})", "logit_bias"},
      {R"("stop": 5)", "stop"},
      {R"("stop": ["a", 5])", "stop"},
      {R"("stop": "")", "stop"},
      {R"("stop_token_ids": [257])", "stop_token_ids"},
      {R"("allowed_token_ids": [])", "allowed_token_ids"},
      {R"("stream": 1)", "stream"},
      {R"("stream_options": {})", "stream_options"},
      {R"("best_of": 2)", "best_of"},
      {R"("suffix": "x")", "suffix"},
      {R"("prompt_logprobs": 6)", "prompt_logprobs"},
      {R"("prompt_logprobs": -1)", "prompt_logprobs"},
      {R"("prompt_logprobs": 1, "stream": true)", "prompt_logprobs"},
      {R"("prompt_logprob_start": 1)", "prompt_logprob_start"},
      {R"("prompt_logprobs": 1, "prompt_logprob_start": 2)", "prompt_logprob_start"},
      {R"("echo": true, "logprobs": 1, "prompt_logprobs": 1, "prompt_logprob_start": 1)",
       "prompt_logprob_start"},
      {R"("logprob_token_ids": [1, 1])", "logprob_token_ids"},
      {R"("logprob_token_ids": [257])", "logprob_token_ids"},
      {R"("response_format": {"type": "json"})", "response_format.type"},
      {R"("min_tokens": 20)", "min_tokens"},
      {R"("slo_ttft_ms": 0)", "slo_ttft_ms"},
      {R"("prompt": 5)", "prompt"},
      {R"("prompt": [])", "prompt"},
      {R"("prompt": "")", "prompt"},
      {R"("prompt": [1, 300])", "prompt"},
      {R"("prompt": [1, "a"])", "prompt"},
      {R"("prompt": ["a", ""])", "prompt[1]"},
      {R"("prompt": [[1], [300]])", "prompt[1]"},
      {R"("guided_choice": ["abcdefghijklmnopqrst"])", "max_tokens"},
      {R"("model": 5)", "model"},
  };
  for (const auto& [field, param] : cases) {
    const bool own_prompt = std::string(field).starts_with("\"prompt\":");
    const std::string body =
        own_prompt ? std::string("{") + field + "}"
                   : std::string(R"({"prompt": "Hi", "max_tokens": 16, )") + field + "}";
    const Answer answer = Post("/v1/completions", body);
    EXPECT_EQ(answer.status, 400) << field << " " << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param) << field << " " << answer.body;
  }
  EXPECT_EQ(Complete(R"("temperature": 3.5)").json()["error"]["message"],
            "temperature must be a number in [0, 2], got 3.5");
  EXPECT_EQ(engine_.num_running(), 0);
}

TEST_F(CompletionsTest, UnknownModelAliasAndNone) {
  Start();
  const Answer answer = Post("/v1/completions", R"({"model": "other", "prompt": "a"})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.json()["error"]["code"], "model_not_found");
  EXPECT_EQ(Post("/v1/completions", R"({"model": "alias/of-fake", "prompt": "a"})").status, 200);
  EXPECT_EQ(Post("/v1/completions", R"({"prompt": "a"})").status, 200);
}

TEST_F(CompletionsTest, TooLongPromptAndTruncation) {
  Start();
  const std::string longest(5000, 'x');
  const Answer answer = Post("/v1/completions", R"({"prompt": ")" + longest + "\"}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.json()["error"]["message"].get<std::string>().find("4096"), std::string::npos);
  EXPECT_EQ(
      Post("/v1/completions", R"({"truncate_prompt_tokens": 3, "prompt": ")" + longest + "\"}")
          .json()["usage"]["prompt_tokens"],
      3);
  // As much of the prompt is kept as fits before the requested answer.
  const std::string fitting = R"({"truncate_prompt_tokens": -1, "prompt": ")" + longest + "\"";
  Json json =
      Post("/v1/completions", fitting + R"(, "max_tokens": 100, "ignore_eos": true})").json();
  EXPECT_EQ(json["usage"]["prompt_tokens"], 3996);
  EXPECT_EQ(json["usage"]["completion_tokens"], 100);
  json = Post("/v1/completions", fitting + R"(, "guided_choice": ["no", "perhaps"]})").json();
  EXPECT_EQ(json["usage"]["prompt_tokens"], 4089);
  json = Post("/v1/completions", fitting + R"(, "max_tokens": 4096})").json();
  EXPECT_EQ(json["error"]["param"], "max_tokens");
}

TEST_F(CompletionsTest, FullQueueIs429AndCancelsWhatItTook) {
  Start();
  engine_.set_paused(true);
  engine_.set_queue_limit(2);
  Client first(port_);
  first.SendRequest("POST", "/v1/completions", R"({"prompt": "a"})");
  ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  const Answer answer = Post("/v1/completions", R"({"prompt": ["b", "c"]})");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.Field("Retry-After"), "1");
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 1; }));
  EXPECT_EQ(engine_.num_cancelled(), 1);
  first.Close();
}

TEST_F(CompletionsTest, MorePromptsThanTheQueueTakesAreRefused) {
  Start();
  engine_.set_queue_limit(2);
  const Answer answer = Post("/v1/completions", R"({"prompt": ["a", "b", "c"]})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "prompt");
  EXPECT_EQ(answer.json()["error"]["message"], "prompt must hold 1 to 2 prompts, got 3");
  EXPECT_EQ(Post("/v1/completions", R"({"prompt": ["a", "b"]})").status, 200);
}

// The lists of a request are copied for each of its prompts.
TEST_F(CompletionsTest, ListsAreBounded) {
  Start();
  const auto refused = [&](const std::string& prompt, const std::string& fields) {
    const Answer answer = Post("/v1/completions", R"({"prompt": )" + prompt + ", " + fields + "}");
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.json()["error"]["param"].get<std::string>();
  };
  const auto list = [](size_t count, const std::string& item) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += (i > 0 ? ", " : "[") + item;
    return text + "]";
  };
  EXPECT_EQ(refused(R"("a")", R"("user": ")" + std::string(1025, 'u') + "\""), "user");
  EXPECT_EQ(refused(R"("a")", R"("stop_token_ids": )" + list(1025, "7")), "stop_token_ids");
  std::string choices;
  for (char c = 'a'; c <= 'p'; ++c) {
    choices += (c > 'a' ? ", \"" : "\"") + std::string(4000, c) + "\"";
  }
  choices = R"("guided_choice": [)" + choices + "]";
  EXPECT_EQ(refused(list(300, R"("a")"), choices),
            "prompt");  // the choices have 64,000 tokens each
  EXPECT_EQ(engine_.num_running(), 0);
  EXPECT_EQ(
      Post("/v1/completions", R"({"max_tokens": 1, "prompt": )" + list(300, R"("a")") + "}").status,
      200);
}

TEST_F(CompletionsTest, EngineFailureIsAnErrorInBothForms) {
  Start();
  engine_.set_failing(true);
  const Answer whole = Complete("");
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(whole.json()["error"]["message"], "the fake engine fails");
  const Answer streamed = Complete(R"("stream": true)");
  const std::vector<std::string> events = streamed.Events();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ((*ParseJson(events[events.size() - 2]))["error"]["message"], "the fake engine fails");
}

// Found by the fuzzer: the end of the stream came without a head.
TEST_F(CompletionsTest, AStreamWithoutContentHasAHead) {
  Start();
  const Answer answer =
      Post("/", R"({"inputs": "a", "parameters": {"max_new_tokens": 0}, "stream": true})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.Field("Content-Type").starts_with("text/event-stream"));
}

TEST_F(CompletionsTest, ClientThatLeavesIsCancelled) {
  Start();
  engine_.set_paused(true);
  for (const char* stream : {"false", "true"}) {
    Client client(port_);
    client.SendRequest("POST", "/v1/completions",
                       std::string(R"({"prompt": ["a", "b"], "stream": )") + stream + "}");
    ASSERT_TRUE(Eventually([&] { return engine_.num_running() == 2; }));
    client.Close();
    EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
  }
  EXPECT_EQ(engine_.num_cancelled(), 4);
  EXPECT_TRUE(Eventually([&] { return server_->Drained(); }));
}

TEST_F(CompletionsTest, OneEventMayBeLongerThanTheStreamsQueue) {
  ServerConfig config;
  config.max_stream_queue_bytes = 1000;
  Start(config);
  const Answer answer = Post("/v1/completions", R"({"prompt": ")" + std::string(500, 'x') +
                                                    R"(", "stream": true, "echo": true,
                                                        "logprobs": 1, "max_tokens": 2})");
  const std::vector<std::string> events = answer.Events();
  ASSERT_GE(events.size(), 3u);
  EXPECT_GT(events[0].size(), config.max_stream_queue_bytes);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST_F(CompletionsTest, SlowReaderIsAbortedAndHoldsNobody) {
  ServerConfig config;
  config.max_stream_queue_bytes = 64 << 10;
  Start(config);
  Client slow(port_, /*receive_bytes=*/4096);
  slow.SendRequest(
      "POST", "/v1/completions",
      R"({"prompt": "a", "stream": true, "ignore_eos": true, "max_tokens": 50000000})");
  EXPECT_EQ(Complete("").status, 200);  // other requests continue meanwhile
  EXPECT_TRUE(Eventually([&] { return engine_.num_cancelled() == 1; }));
  EXPECT_TRUE(Eventually([&] { return engine_.num_running() == 0; }));
}

}  // namespace
}  // namespace skein::testing
