#include <gtest/gtest.h>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

using PromptLogprobsTest = ServerTest;

TEST_F(PromptLogprobsTest, EchoWithoutAnswer) {
  Start();
  const Answer answer = Complete(R"("echo": true, "logprobs": 2, "max_tokens": 0)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json choice = answer.json()["choices"][0];
  EXPECT_EQ(choice["text"], "Hi");
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_FALSE(choice.contains("prompt_logprobs"));
  EXPECT_EQ(choice["logprobs"]["tokens"].dump(), R"(["H","i"])");
  EXPECT_EQ(choice["logprobs"]["token_logprobs"].dump(), "[null,-1.0]");
  EXPECT_EQ(choice["logprobs"]["top_logprobs"].dump(), R"([null,{"A":-0.25,"B":-1.25,"i":-1.0}])");
  EXPECT_EQ(choice["logprobs"]["text_offset"].dump(), "[0,1]");
  EXPECT_EQ(answer.json()["usage"]["completion_tokens"], 0);
  EXPECT_EQ(engine_.last_request().prompt_logprobs->num_top, 2);
  EXPECT_EQ(engine_.last_request().generate().max_tokens, 0);
}

TEST_F(PromptLogprobsTest, EchoGoesOnWithTheAnswer) {
  Start();
  const std::string body = R"({"prompt": ["h\u00e9", "Hi"], "n": 2, "echo": true, "logprobs": 0,
                              "max_tokens": 2)";
  const Json json = Post("/v1/completions", body + "}").json();
  ASSERT_EQ(json["choices"].size(), 4u);
  const Json& logprobs = json["choices"][1]["logprobs"];
  EXPECT_EQ(json["choices"][1]["text"], "h\u00e9He");
  EXPECT_EQ(logprobs["tokens"].dump(), R"(["h","bytes:\\xc3","bytes:\\xa9","H","e"])");
  EXPECT_EQ(logprobs["token_logprobs"].dump(), "[null,-1.0,-2.0,-0.5,-0.5]");
  EXPECT_EQ(logprobs["text_offset"].dump(), "[0,1,1,2,3]");
  EXPECT_EQ(json["choices"][3]["logprobs"]["tokens"].dump(), R"(["H","i","H","e"])");

  std::string texts[4];
  std::vector<Json> tokens(4, Json::array());
  for (const std::string& event : Post("/v1/completions", body + R"(, "stream": true})").Events()) {
    if (event == "[DONE]") break;
    const Json choice = (*ParseJson(event))["choices"][0];
    const size_t index = choice["index"].get<size_t>();
    texts[index] += choice["text"].get<std::string>();
    for (const Json& token : choice["logprobs"]["tokens"]) tokens[index].push_back(token);
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(texts[i], json["choices"][i]["text"]);
    EXPECT_EQ(tokens[i], json["choices"][i]["logprobs"]["tokens"]);
  }
}

TEST_F(PromptLogprobsTest, OffsetsCountSpecialTokensWhereTheTextHasThem) {
  Start();
  const std::string body = R"({"prompt": [65, 256, 66], "echo": true, "logprobs": 0,
                              "max_tokens": 0, "skip_special_tokens": )";
  const Json without = Post("/v1/completions", body + "true}").json()["choices"][0];
  EXPECT_EQ(without["text"], "AB");
  EXPECT_EQ(without["logprobs"]["text_offset"].dump(), "[0,1,1]");
  const Json with = Post("/v1/completions", body + "false}").json()["choices"][0];
  EXPECT_EQ(with["text"], "A<eos>B");
  EXPECT_EQ(with["logprobs"]["text_offset"].dump(), "[0,1,6]");
}

TEST_F(PromptLogprobsTest, OfCompletions) {
  Start();
  const Answer answer = Complete(R"("prompt_logprobs": 1, "max_tokens": 1)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json choice = answer.json()["choices"][0];
  EXPECT_EQ(choice["text"], "H");
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(choice["prompt_logprobs"].dump(),
            R"([null,{"105":{"logprob":-1.0,"rank":3,"decoded_token":"i"},)"
            R"("65":{"logprob":-0.25,"rank":1,"decoded_token":"A"}}])");
}

TEST_F(PromptLogprobsTest, StartAndSeveralCounts) {
  Start();
  const Json started = Post("/v1/completions", R"({"prompt": "abcd", "prompt_logprobs": 0,
                                                   "prompt_logprob_start": 3, "max_tokens": 0})")
                           .json()["choices"][0];
  EXPECT_EQ(started["text"], "");
  EXPECT_EQ(started["prompt_logprobs"].dump(),
            R"([null,null,null,{"100":{"logprob":-3.0,"rank":3,"decoded_token":"d"}}])");
  EXPECT_EQ(engine_.last_request().prompt_logprobs->start, 3);
  // Each list has the requested length.
  const Json both =
      Complete(R"("prompt_logprobs": 1, "logprobs": 3, "echo": true, "max_tokens": 1)")
          .json()["choices"][0];
  EXPECT_EQ(engine_.last_request().prompt_logprobs->num_top, 3);
  EXPECT_EQ(both["prompt_logprobs"][1].size(), 2u);
  EXPECT_EQ(both["logprobs"]["top_logprobs"][1].size(), 4u);
}

TEST_F(PromptLogprobsTest, OfAChat) {
  Start();
  const Answer answer = Post("/v1/chat/completions",
                             R"({"messages": [{"role": "u", "content": "x"}], "max_tokens": 1,
                                 "prompt_logprobs": 0})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json list = answer.json()["prompt_logprobs"];
  ASSERT_EQ(list.size(), std::string("u: x\nassistant: ").size());
  EXPECT_TRUE(list[0].is_null());
  EXPECT_EQ(list[3].dump(), R"({"120":{"logprob":-3.0,"rank":3,"decoded_token":"x"}})");
}

TEST_F(PromptLogprobsTest, NamedTokens) {
  Start();
  const Json completion =
      Complete(R"("logprob_token_ids": [90, 72], "max_tokens": 1)").json()["choices"][0];
  EXPECT_EQ(completion["logprobs"]["top_logprobs"].dump(), R"([{"H":-0.5,"Z":-9.5}])");
  const Json chat = Post("/v1/chat/completions",
                         R"({"messages": [{"role": "u", "content": "x"}], "max_tokens": 1,
                             "logprobs": true, "top_logprobs": 1, "logprob_token_ids": [90, 72]})")
                        .json()["choices"][0]["logprobs"]["content"][0]["top_logprobs"];
  ASSERT_EQ(chat.size(), 2u);
  EXPECT_EQ(chat[0]["token"], "H");
  EXPECT_EQ(chat[1]["token"], "Z");
  EXPECT_EQ(chat[1]["logprob"], -9.5);
}

}  // namespace
}  // namespace skein::testing
