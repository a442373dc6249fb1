// Requests that would wait too long are refused before their prompts are made, on every route.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/fake_server.h"

namespace skein::testing {
namespace {

struct Call {
  std::string path, body;
};

constexpr char kMessages[] = R"("messages": [{"role": "user", "content": "hi"}])";

std::vector<Call> Generations() {
  const std::string messages = kMessages;
  return {{"/v1/completions", R"({"prompt": "hi"})"},
          {"/v1/completions", R"({"prompt": ["hi", "you"], "max_tokens": 1})"},
          {"/v1/chat/completions", "{" + messages + "}"},
          {"/v1/chat/completions", "{" + messages + R"(, "max_tokens": 1, "stream": true})"},
          {"/v1/messages", "{" + messages + R"(, "max_tokens": 5})"},
          {"/v1/responses", R"({"input": "hi"})"},
          {"/api/chat", "{" + messages + "}"},
          {"/api/generate", R"({"prompt": "hi"})"},
          {"/", R"({"inputs": "hi"})"}};
}

std::vector<Call> Decisions() {
  return {{"/v1/decisions", R"({"input": "hi", "questions": [{"type": "predicate",
                            "instructions": "Kind?"}]})"},
          {"/v1/systemone", R"({"state": "hi", "questions": {"a": {"type": "noul",
                            "instructions": "Kind?"}}})"},
          {"/v1/score", R"({"queries": "a", "documents": ["b"]})"},
          {"/v1/score", R"({"query": "a", "items": ["b"], "label_token_ids": [1, 2]})"},
          {"/generative_scoring", R"({"query": "a", "items": ["b"], "label_token_ids": [1, 2]})"},
          {"/rerank", R"({"query": "a", "documents": ["b"]})"},
          {"/", R"({"inputs": "hi", "parameters": {"candidate_labels": ["a", "b"]}})"}};
}

std::vector<Call> Vectors() {
  return {{"/v1/embeddings", R"({"input": "hi"})"},
          {"/v1/embeddings", R"({"input": ["hi", "you"]})"},
          {"/pooling", R"({"input": "hi"})"},
          {"/embed", R"({"inputs": "hi"})"},
          {"/api/embed", R"({"input": "hi"})"},
          {"/api/embeddings", R"({"prompt": "hi"})"},
          {"/embed_all", R"({"inputs": "hi"})"},
          {"/similarity", R"({"inputs": {"source_sentence": "a", "sentences": ["b"]}})"},
          {"/rerank", R"({"query": "a", "documents": ["b"]})"}};
}

std::vector<Call> Classes() {
  return {{"/classify", R"({"input": "hi"})"},
          {"/predict", R"({"inputs": "hi"})"},
          {"/predict", R"({"inputs": [["a", "b"], ["c"]]})"},
          {"/rerank", R"({"query": "a", "documents": ["b"]})"},
          {"/", R"({"inputs": "hi", "parameters": {"candidate_labels": ["a", "b"]}})"}};
}

class EarlyCheckTest : public ServerTest {
 protected:
  void ExpectRefused(const std::vector<Call>& calls) {
    engine_.set_refuses_early(true);
    for (const Call& call : calls) {
      SCOPED_TRACE(call.path + " " + call.body);
      const Answer answer = Post(call.path, call.body);
      EXPECT_EQ(answer.status, 429) << answer.body;
      EXPECT_EQ(answer.Field("Retry-After"), "3");
      EXPECT_NE(answer.body.find("the queue is too long"), std::string::npos) << answer.body;
    }
  }
  void ExpectStatus(int status, const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      SCOPED_TRACE(call.path + " " + call.body);
      const Answer answer = Post(call.path, call.body);
      EXPECT_EQ(answer.status, status) << answer.body;
    }
  }
};

TEST_F(EarlyCheckTest, Generations) {
  Start();
  ExpectStatus(200, Generations());
  ExpectRefused(Generations());
}

TEST_F(EarlyCheckTest, Decisions) {
  Start();
  ExpectRefused(Decisions());
}

TEST_F(EarlyCheckTest, Vectors) {
  traits_.embeds = true;
  traits_.generates = false;
  traits_.embedding_size = 4;
  Start();
  ExpectRefused(Vectors());
}

TEST_F(EarlyCheckTest, Classes) {
  traits_.classifies = traits_.encodes_pairs = true;
  traits_.generates = false;
  traits_.class_labels = {"CONTRADICTION", "ENTAILMENT"};
  Start();
  ExpectRefused(Classes());
}

// Calls that only make a prompt wait for nothing.
TEST_F(EarlyCheckTest, PromptsAreStillMade) {
  Start();
  engine_.set_refuses_early(true);
  const std::string chat = std::string("{") + kMessages + "}";
  ExpectStatus(200, {{"/v1/completions/render", R"({"prompt": "hi"})"},
                     {"/v1/chat/completions/render", chat},
                     {"/v1/messages/count_tokens", chat},
                     {"/tokenize", R"({"prompt": "hi"})"},
                     {"/tokenize", chat}});
}

// A wrong field is named, whatever the queue.
TEST_F(EarlyCheckTest, WrongFieldsComeFirst) {
  traits_.embeds = true;
  traits_.embedding_size = 4;
  Start();
  engine_.set_refuses_early(true);
  ExpectStatus(400,
               {{"/v1/completions", R"({"prompt": 5})"},
                {"/v1/completions", R"({"prompt": []})"},
                {"/v1/completions", R"({"prompt": ["a", 5]})"},
                {"/v1/completions", R"({"prompt": [1, 100000]})"},
                {"/v1/completions", R"({"prompt": "hi", "temperature": -1})"},
                {"/v1/completions", R"({"prompt": "hi", "timeout_ms": 0})"},
                {"/v1/chat/completions", R"({"messages": []})"},
                {"/v1/chat/completions", R"({"messages": [{"role": "user", "content": 5}]})"},
                {"/v1/chat/completions", std::string("{") + kMessages + R"(, "tools": 5})"},
                {"/v1/decisions", R"({"input": "hi", "questions": [{"type": "predicate"}]})"},
                {"/v1/systemone", R"({"state": "hi", "questions": {"a": {"type": "noul"}}})"},
                {"/rerank", R"({"query": "a", "documents": ["b", 5]})"},
                {"/v1/score", R"({"query": "a", "items": ["b", 5], "label_token_ids": [1, 2]})"},
                {"/v1/embeddings", R"({"input": ["hi", 5]})"},
                {"/v1/embeddings", R"({"input": "hi", "dimensions": -1})"}});
}

}  // namespace
}  // namespace skein::testing
