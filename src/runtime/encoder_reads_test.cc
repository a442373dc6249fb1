// Encoders through the whole engine: the values are those of the reference, the bits are the same
// alone and in a batch, and refusals are clear.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine_loop.h"
#include "runtime/cpu_runtime.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using Rows = std::vector<std::vector<float>>;

class EncoderReadsTest : public ::testing::Test {
 protected:
  // With `prefill_only`, uses the preset prefill-only and a pool of one block, which encoders do
  // not use.
  void Load(const std::string& name, Pooling pooling = Pooling::kMean, bool prefill_only = false) {
    const std::string dir = SKEIN_SOURCE_DIR "/tests/data/encoders/" + name;
    engine_ = nullptr;
    std::ifstream file(dir + "/golden.json");
    golden_ = Json::parse(file)["prompts"].get<std::vector<Json>>();
    // The budget is such that some steps have one prompt and others several.
    int32_t step_tokens = 150;
    for (const Json& golden : golden_) {
      step_tokens = std::max(step_tokens, static_cast<int32_t>(golden["ids"].size()));
    }
    const Policies policies = FindPreset(prefill_only ? "prefill-only" : "prelude")->policies;
    const int32_t num_kv_blocks = prefill_only ? 1 : 40;
    runtime_ = CpuRuntime::Load({.model_dir = dir,
                                 .threads = 2,
                                 .max_num_batched_tokens = step_tokens,
                                 .pooling = pooling,
                                 .num_kv_blocks = num_kv_blocks,
                                 .execution = policies.execution,
                                 .retention = policies.retention,
                                 .chunk_tokens = 7})
                   .value();
    const Head head = runtime_->config().head;
    engine_ = MakeEngine({.scheduler = {.policies = policies,
                                        .num_kv_blocks = num_kv_blocks,
                                        .max_model_len = runtime_->max_model_len(),
                                        .max_num_seqs = 4,
                                        .max_num_batched_tokens = step_tokens},
                          .vocab_size = runtime_->config().vocab_size,
                          .generates = false,
                          .embeds = head == Head::kNone,
                          .classifies = head == Head::kClassifier,
                          .reads_whole_prompts = true},
                         &runtime_->executor(), &clock_)
                  .value();
  }

  Request RequestOf(const Json& golden, OutputSpec output) {
    Request request;
    request.prompt = golden["ids"].get<std::vector<TokenId>>();
    if (!golden["second_segment_begin"].is_null()) {
      request.second_segment_begin = golden["second_segment_begin"].get<int32_t>();
    }
    request.output = std::move(output);
    return request;
  }

  // Submits all requests at the same time. Returns the values in order.
  Rows AskAll(const std::vector<Request>& requests) {
    std::map<RequestId, std::vector<float>> answers;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<RequestId> ids;
    const auto callback = [&](RequestOutput output) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(output.status.ok()) << output.status.message();
      EXPECT_EQ(output.cached_tokens, 0);
      answers[output.request] = output.read ? output.read->values : std::vector<float>();
      changed.notify_all();
    };
    EXPECT_TRUE(engine_->SubmitGroup(requests, callback, &ids).ok());
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return answers.size() == requests.size(); });
    Rows rows;
    for (const RequestId id : ids) rows.push_back(answers[id]);
    return rows;
  }

  // Sends every prompt three times at the same time, then each prompt alone.
  void ExpectGolden(const char* member, const OutputSpec& output) {
    std::vector<Request> requests;
    for (int round = 0; round < 3; ++round) {
      for (const Json& golden : golden_) requests.push_back(RequestOf(golden, output));
    }
    const Rows rows = AskAll(requests);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Json& expected = golden_[i % golden_.size()][member];
      ASSERT_EQ(rows[i].size(), expected.size());
      for (size_t d = 0; d < expected.size(); ++d) {
        EXPECT_NEAR(rows[i][d], expected[d].get<double>(), 1e-5);
      }
      EXPECT_EQ(AskAll({requests[i]}).at(0), rows[i]);
    }
  }

  MonotonicClock clock_;
  std::unique_ptr<CpuRuntime> runtime_;
  std::unique_ptr<EngineLoop> engine_;
  std::vector<Json> golden_;
};

TEST_F(EncoderReadsTest, Embeddings) {
  for (const char* name : {"bert", "roberta", "distilbert", "mpnet", "modernbert"}) {
    SCOPED_TRACE(name);
    Load(name, Pooling::kMean);
    ExpectGolden("mean", EmbedSpec{});
    Load(name, Pooling::kCls);
    ExpectGolden("first", EmbedSpec{});
    Load(name, Pooling::kLast);
    ExpectGolden("last", EmbedSpec{});
  }
}

TEST_F(EncoderReadsTest, Classes) {
  for (const char* name :
       {"bert-classifier", "roberta-classifier", "xlm-roberta-reranker", "distilbert-classifier",
        "mpnet-classifier", "modernbert-biases", "modernbert-reranker"}) {
    SCOPED_TRACE(name);
    Load(name);
    ExpectGolden("outputs", ClassifySpec{});
  }
}

TEST_F(EncoderReadsTest, HybridWithoutKvBlocksHasTheSameBits) {
  const auto ask = [&](const char* name, const OutputSpec& output, bool prefill_only) {
    Load(name, Pooling::kMean, prefill_only);
    std::vector<Request> requests;
    for (const Json& golden : golden_) requests.push_back(RequestOf(golden, output));
    return AskAll(requests);
  };
  for (const char* name : {"bert", "modernbert"}) {
    EXPECT_EQ(ask(name, EmbedSpec{}, true), ask(name, EmbedSpec{}, false));
  }
  for (const char* name : {"roberta-classifier", "mpnet-classifier", "modernbert-biases"}) {
    EXPECT_EQ(ask(name, ClassifySpec{}, true), ask(name, ClassifySpec{}, false));
  }
}

TEST_F(EncoderReadsTest, RefusesWhatTheModelLacks) {
  Load("bert-classifier");
  RequestId id = 0;
  const auto submit = [&](OutputSpec output, std::optional<int32_t> second_segment_begin) {
    Request request = RequestOf(golden_[1], std::move(output));
    request.second_segment_begin = second_segment_begin;
    return engine_->Submit(
        std::move(request), [](RequestOutput) {}, &id);
  };
  Status status = submit(GenerateSpec{}, std::nullopt);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("output matrix"));
  EXPECT_EQ(submit(EmbedSpec{}, std::nullopt).code(), StatusCode::kUnsupported);
  status = submit(ClassifySpec{}, 8);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("second_segment_begin is 8, must be in [0, 7]"));
}

}  // namespace
}  // namespace skein
