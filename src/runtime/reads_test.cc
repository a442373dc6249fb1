// Reads of prompts through the whole engine on the processor. The bits do not depend on the chunks,
// the cache, the load and the memory, and the values are those of the reference.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "testing/cpu_engine.h"

namespace skein {
namespace {

using testing::Answer;
using testing::Dir;
using testing::ExpectSame;
using testing::ServeOptions;
using testing::Server;
using Json = nlohmann::json;

class ReadsTest : public ::testing::Test {
 protected:
  ReadsTest() { std::printf("seed %llu\n", static_cast<unsigned long long>(seed_)); }

  Request NewRequest(int32_t num_tokens, OutputSpec output) {
    Request request;
    while (std::ssize(request.prompt) < num_tokens) {
      request.prompt.push_back(static_cast<TokenId>(random_() % 128));
    }
    request.output = std::move(output);
    return request;
  }

  // One request of each kind. Its reference answer is computed alone, with nothing cached.
  std::vector<Request> Mixture() {
    std::vector<Request> requests;
    requests.push_back(NewRequest(120, LabelSpec{.tokens = {5, 77, 6}}));
    requests.push_back(NewRequest(97, LabelSpec{.tokens = {120, 2}, .want_log_sum_exp = true}));
    requests.push_back(NewRequest(100, GenerateSpec{.max_tokens = 0}));
    requests.push_back(NewRequest(64, GenerateSpec{.max_tokens = 1}));
    requests.push_back(NewRequest(65, GenerateSpec{.max_tokens = 30}));
    requests.push_back(NewRequest(150, EmbedSpec{}));
    for (int i = 0; i < 5; ++i) {
      requests[i].prompt_logprobs = PromptLogprobsSpec{.num_top = i, .start = i < 3 ? 0 : 40};
    }
    requests.push_back(requests[0]);
    requests.back().prompt_logprobs.reset();
    return requests;
  }

  void ExpectSameBitsUnderLoad(const std::string& quantization);

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
};

void ReadsTest::ExpectSameBitsUnderLoad(const std::string& quantization) {
  const std::vector<Request> requests = Mixture();
  std::vector<Answer> expected;
  {
    Server alone({.quantization = quantization, .caching = false});
    for (const Request& request : requests) expected.push_back(alone.Ask(request));
  }
  ASSERT_EQ(expected[0].prompt_logprobs.size(), 119u);
  ASSERT_EQ(expected[3].prompt_logprobs.size(), 24u);
  EXPECT_EQ(expected[4].tokens.size(), 30u);
  EXPECT_EQ(expected[5].read->values.size(), 64u);
  EXPECT_GT(expected[1].read->log_sum_exp, expected[1].read->values[0]);
  ServeOptions cases[] = {
      {},
      {.max_num_batched_tokens = 4},
      {.max_num_batched_tokens = 33},
      {.max_num_batched_tokens = 70, .num_kv_blocks = 8},
      {.max_num_batched_tokens = 40, .num_kv_blocks = 8, .caching = false},
      // In these configurations, the blocks cannot hold prompts of 120 tokens or more.
      {.max_num_batched_tokens = 40, .num_kv_blocks = 3, .preset = "prefill-only"},
      {.max_num_batched_tokens = 70, .num_kv_blocks = 3, .retention = Retention::kNone},
      {.num_kv_blocks = 5,
       .execution = Execution::kHybrid,
       .retention = Retention::kPrefix,
       .chunk_tokens = 33},
      {.max_num_batched_tokens = 100, .execution = Execution::kHybrid, .chunk_tokens = 32}};
  for (ServeOptions& options : cases) {
    options.quantization = quantization;
    SCOPED_TRACE(options.max_num_batched_tokens);
    Server server(options);
    for (int round = 0; round < 3; ++round) {  // in later rounds, the cache is filled
      std::vector<Request> load;
      std::vector<size_t> which;
      for (int i = 0; i < 12; ++i) {
        which.push_back(random_() % requests.size());
        load.push_back(requests[which.back()]);
      }
      const std::vector<Answer> answers = server.AskAll(load);
      for (size_t i = 0; i < load.size(); ++i) ExpectSame(answers[i], expected[which[i]]);
    }
  }
}

TEST_F(ReadsTest, SameBitsWhateverTheLoadTheChunksAndTheCache) { ExpectSameBitsUnderLoad("none"); }

TEST_F(ReadsTest, SameBitsWhateverTheLoadWithInt8Weights) { ExpectSameBitsUnderLoad("int8"); }
TEST_F(ReadsTest, SameBitsWhateverTheLoadWithInt4Weights) { ExpectSameBitsUnderLoad("int4"); }

// A prompt that loses its blocks halfway computes their tokens again, but delivers only the
// remaining log-probabilities.
TEST_F(ReadsTest, APreemptedPromptGoesOnWhereItStopped) {
  Request elder = NewRequest(31, GenerateSpec{.max_tokens = 60});
  Request younger = NewRequest(200, GenerateSpec{.max_tokens = 1});
  younger.prompt_logprobs = PromptLogprobsSpec{.num_top = 2};
  Server alone({.caching = false});
  const Answer expected = alone.Ask(younger);
  ASSERT_EQ(expected.prompt_logprobs.size(), 199u);
  for (const bool caching : {false, true}) {
    // `younger` takes seven of eight blocks. `elder` needs its second block before `younger` ends.
    Server server({.max_num_batched_tokens = 40, .num_kv_blocks = 8, .caching = caching});
    ExpectSame(server.AskAll({elder, younger})[1], expected);
    EXPECT_GE(server.engine().Stats().num_preemptions, 1u);
  }
}

TEST_F(ReadsTest, LabelsAgreeWithTheLogSumExpOfTheWholeVocabulary) {
  Server server({});
  std::vector<TokenId> all(128);
  std::iota(all.begin(), all.end(), 0);
  Request request = NewRequest(40, LabelSpec{.tokens = all, .want_log_sum_exp = true});
  const Answer whole = server.Ask(request);
  double sum = 0;
  for (const float value : whole.read->values) sum += std::exp(double{value});
  EXPECT_NEAR(whole.read->log_sum_exp, std::log(sum), 1e-5);
  request.output = LabelSpec{.tokens = all};
  const Answer labels = server.Ask(request);
  EXPECT_EQ(labels.read->values, whole.read->values);
  EXPECT_EQ(labels.read->log_sum_exp, 0);
  EXPECT_EQ(server.engine().Stats().decode_slots_taken, 0u);
  EXPECT_EQ(server.engine().Stats().steps_oneshot, 2u);
}

TEST_F(ReadsTest, PooledPromptsRunWhole) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kCls}) {
    Server server({.max_num_batched_tokens = 100, .max_num_seqs = 4, .pooling = pooling});
    const Request request = NewRequest(96, EmbedSpec{});
    Request labels = request;
    labels.output = LabelSpec{.tokens = {1}};
    const Answer alone = server.Ask(request);
    server.Ask(labels);  // puts the request's prefix into the cache
    const std::vector<Answer> answers =
        server.AskAll({NewRequest(120, GenerateSpec{.max_tokens = 9}), request, labels, request});
    ExpectSame(answers[1], alone);
    ExpectSame(answers[3], alone);
    EXPECT_EQ(answers[1].cached_tokens, 0);
    EXPECT_EQ(answers[2].cached_tokens, 64);
    RequestId id = 0;
    const Status refused = server.engine().Submit(
        NewRequest(97, EmbedSpec{}), [](RequestOutput) {}, &id);
    EXPECT_EQ(refused.param(), "prompt");
    EXPECT_EQ(server.engine().Limits().max_whole_prompt_len, 96);
  }
}

// A long prompt runs in a step of its own, beyond the budget, beside decodes.
TEST_F(ReadsTest, LongPooledPromptsRunWhole) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kCls}) {
    const Request request = NewRequest(200, EmbedSpec{});
    Server plain({.pooling = pooling});
    const Answer expected = plain.Ask(request);
    Server server({.max_num_batched_tokens = 32,
                   .long_prompt_tokens = 200,
                   .max_num_seqs = 4,
                   .pooling = pooling});
    EXPECT_EQ(server.engine().Limits().max_whole_prompt_len, 200);
    const std::vector<Answer> answers =
        server.AskAll({NewRequest(20, GenerateSpec{.max_tokens = 9}), request,
                       NewRequest(30, EmbedSpec{}), request});
    ExpectSame(answers[1], expected);
    ExpectSame(answers[3], expected);
  }
}

// If no KV is kept, a prompt runs whole, whatever the budget.
TEST_F(ReadsTest, PooledPromptsOfAnyLengthWithoutKvBlocks) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kCls}) {
    const Request request = NewRequest(200, EmbedSpec{});
    Server plain({.pooling = pooling});
    const Answer expected = plain.Ask(request);
    Server server({.max_num_batched_tokens = 8,
                   .num_kv_blocks = 1,
                   .pooling = pooling,
                   .preset = "prefill-only"});
    ExpectSame(server.Ask(request), expected);
    EXPECT_EQ(server.engine().Limits().max_whole_prompt_len, 250);
    EXPECT_EQ(server.engine().Stats().kv_blocks_cached, 0);
  }
}

TEST_F(ReadsTest, PromptLogprobsAgreeWithTheReference) {
  for (const char* model : {"models/qwen3", "models/llama-default", "models/qwen2-tied"}) {
    SCOPED_TRACE(model);
    std::ifstream file(Dir(model) + "/golden.json");
    const Json golden = Json::parse(file);
    Server server({.model = model, .max_num_batched_tokens = 30});
    for (const Json& prompt : golden["prompts"]) {
      Request request;
      request.prompt = prompt["prompt_ids"].get<std::vector<TokenId>>();
      const auto length = std::ssize(request.prompt);
      std::vector<TokenId> all(golden["vocab_size"].get<size_t>());
      std::iota(all.begin(), all.end(), 0);
      request.output = LabelSpec{.tokens = all, .want_log_sum_exp = true};
      request.prompt_logprobs = PromptLogprobsSpec{.num_top = 5};
      const Answer answer = server.Ask(request);
      ASSERT_EQ(std::ssize(answer.prompt_logprobs), length - 1);
      for (const PromptLogprob& logprob : answer.prompt_logprobs) {
        EXPECT_EQ(logprob.chosen.token, request.prompt[logprob.position]);
        const Json& ids = prompt["top_ids"][logprob.position - 1];
        const Json& values = prompt["top_logprobs"][logprob.position - 1];
        for (int k = 0; k < 5; ++k) {
          EXPECT_NEAR(logprob.top_logprobs[k].logprob, values[k], 1e-4);
          if (logprob.chosen.token != ids[k]) continue;
          EXPECT_NEAR(logprob.chosen.logprob, values[k], 1e-4);
        }
      }
      for (size_t id = 0; id < all.size(); ++id) {
        EXPECT_NEAR(answer.read->values[id] - answer.read->log_sum_exp, prompt["last_logprobs"][id],
                    1e-4);
      }
    }
  }
}

// Pooling and the Dense modules behind it, compared with files that sentence-transformers wrote
// (tools/make_golden_sentence.py). The server normalizes embeddings, not the engine.
TEST_F(ReadsTest, EmbeddingsOfDenseModulesAgreeWithTheReference) {
  const std::pair<std::string, std::vector<std::string>> models[] = {
      {"sentence/bert-two-dense", {"2_Dense", "3_Dense"}},
      {"sentence/qwen3-dense", {"2_Dense"}},
      {"sentence/embedding-gemma", {"2_Dense", "3_Dense"}}};
  for (const auto& [model, modules] : models) {
    SCOPED_TRACE(model);
    ServeOptions options = {.model = model, .max_model_len = 0, .max_num_batched_tokens = 110};
    options.pooling = LoadPooling(Dir(model)).value().value();
    for (const std::string& module : modules) {
      options.dense.push_back(LoadDenseModule(Dir(model + "/" + module)).value());
    }
    Server server(options);
    std::ifstream file(Dir(model) + "/golden.json");
    const Json golden = Json::parse(file);
    std::vector<Request> requests;
    for (const Json& prompt : golden["prompts"]) {
      requests.emplace_back().prompt = prompt["ids"].get<std::vector<TokenId>>();
      requests.back().output = EmbedSpec{};
    }
    const std::vector<Answer> answers = server.AskAll(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      std::vector<float> got = answers[i].read->values;
      const std::vector<double> want = golden["prompts"][i]["embedding"];
      ASSERT_EQ(got.size(), want.size());
      double norm = 1;
      if (modules.size() == 2) {  // models with two modules end with Normalize
        norm = 0;
        for (const float x : got) norm += double{x} * x;
        norm = std::sqrt(norm);
      }
      for (size_t d = 0; d < want.size(); ++d) EXPECT_NEAR(got[d] / norm, want[d], 1e-5);
      ExpectSame(server.Ask(requests[i]), answers[i]);
    }
  }
}

TEST_F(ReadsTest, ClassesAgreeWithTheReference) {
  for (const char* model :
       {"heads/qwen3-classifier", "heads/llama-reward", "heads/mistral-classifier",
        "heads/qwen2-classifier", "heads/qwen2-reward"}) {
    SCOPED_TRACE(model);
    std::ifstream file(Dir(model) + "/golden.json");
    const Json golden = Json::parse(file);
    Server server({.model = model, .max_num_batched_tokens = 30});
    std::vector<Request> requests;
    for (const Json& prompt : golden["prompts"]) {
      requests.emplace_back();
      requests.back().prompt = prompt["prompt_ids"].get<std::vector<TokenId>>();
      requests.back().output = ClassifySpec{};
    }
    const std::vector<Answer> answers = server.AskAll(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      const std::vector<double> want = golden["prompts"][i]["classes"];
      ASSERT_EQ(answers[i].read->values.size(), want.size());
      for (size_t c = 0; c < want.size(); ++c) {
        EXPECT_NEAR(answers[i].read->values[c], want[c], 2e-5);
      }
      ExpectSame(server.Ask(requests[i]), answers[i]);  // some prefixes are cached in one piece now
    }
    RequestId id = 0;
    const Status refused = server.engine().Submit(
        NewRequest(4, LabelSpec{.tokens = {1}}), [](RequestOutput) {}, &id);
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  }
}

}  // namespace
}  // namespace skein
