#pragma once

// A model of tests/data behind a whole engine on the processor, without a server.

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine_loop.h"
#include "runtime/cpu_runtime.h"
#include "testing/weight_names.h"

namespace skein::testing {

inline std::string Dir(const std::string& name) { return SKEIN_SOURCE_DIR "/tests/data/" + name; }

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<PromptLogprob> prompt_logprobs;
  std::optional<ReadValues> read;
  std::optional<FinishReason> finish;
  int32_t cached_tokens = 0;
};

struct ServeOptions {
  std::string model = "models/qwen3-bf16";
  std::string quantization = "auto";
  int32_t max_model_len = 250;
  int32_t max_num_batched_tokens = 256;
  int32_t long_prompt_tokens = 0;
  int32_t max_num_seqs = 4;
  int32_t num_kv_blocks = 200;
  bool caching = true;
  Pooling pooling = Pooling::kLast;
  std::vector<DenseModule> dense;  // behind it
  std::string preset = "prelude";
  bool force_decode_path = false;
  std::optional<Execution> execution;  // unset: the preset's
  std::optional<Retention> retention;  // likewise
  int32_t chunk_tokens = 48;           // of hybrid execution
  std::optional<Sharing> sharing;      // likewise
};

class Server {
 public:
  explicit Server(const ServeOptions& options) {
    SchedulerConfig scheduler;
    Policies& policies = scheduler.policies;
    policies = FindPreset(options.preset)->policies;
    policies.execution = options.execution.value_or(policies.execution);
    policies.retention = options.retention.value_or(policies.retention);
    if (options.sharing) {
      policies.sharing = *options.sharing;
      policies.granularity = GranularityOf(policies.sharing);
    }
    runtime_ = CpuRuntime::Load({.model_dir = Dir(options.model),
                                 .quantization = QuantizationOf(options.quantization),
                                 .threads = 2,
                                 .max_model_len = options.max_model_len,
                                 .max_num_batched_tokens = options.max_num_batched_tokens,
                                 .long_prompt_tokens = options.long_prompt_tokens,
                                 .max_num_seqs = options.max_num_seqs,
                                 .pooling = options.pooling,
                                 .dense = options.dense,
                                 .num_kv_blocks = options.num_kv_blocks,
                                 .execution = policies.execution,
                                 .retention = policies.retention,
                                 .granularity = policies.granularity,
                                 .num_steps = NumSteps(scheduler),
                                 .chunk_tokens = options.chunk_tokens})
                   .value();
    const Head head = runtime_->config().head;
    const bool whole = runtime_->config().is_encoder() || options.pooling != Pooling::kLast;
    scheduler.max_model_len = runtime_->max_model_len();
    scheduler.num_kv_blocks = options.num_kv_blocks;
    scheduler.num_states = runtime_->num_states();
    scheduler.max_num_seqs = options.max_num_seqs;
    scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
    scheduler.prefix_caching = options.caching;
    scheduler.force_decode_path = options.force_decode_path;
    engine_ = MakeEngine({.scheduler = scheduler,
                          .vocab_size = runtime_->config().vocab_size,
                          .generates = head == Head::kLanguageModel,
                          .embeds = true,
                          .classifies = head == Head::kClassifier,
                          .reads_whole_prompts = whole,
                          .long_prompt_tokens = runtime_->long_prompt_tokens()},
                         &runtime_->executor(), &clock_)
                  .value();
  }

  // Submits all at once; answers in order.
  std::vector<Answer> AskAll(const std::vector<Request>& requests) {
    std::map<RequestId, Answer> answers;
    size_t num_finished = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<RequestId> ids;
    const auto callback = [&](RequestOutput output) {
      const std::lock_guard lock(mutex);
      Answer& answer = answers[output.request];
      for (const OutputToken& token : output.tokens) answer.tokens.push_back(token.token);
      for (PromptLogprob& logprob : output.prompt_logprobs) {
        EXPECT_TRUE(answer.tokens.empty());
        answer.prompt_logprobs.push_back(std::move(logprob));
      }
      if (output.read) answer.read = std::move(output.read);
      answer.finish = output.finish;
      answer.cached_tokens = output.cached_tokens;
      if (output.finish) ++num_finished;
      changed.notify_all();
    };
    if (const Status status = engine_->SubmitGroup(requests, callback, &ids); !status.ok()) {
      ADD_FAILURE() << status.message();  // nothing of it will be answered
      return std::vector<Answer>(requests.size());
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return num_finished == requests.size(); });
    std::vector<Answer> in_order;
    for (const RequestId id : ids) in_order.push_back(answers[id]);
    return in_order;
  }
  Answer Ask(const Request& request) { return AskAll({request}).front(); }

  EngineLoop& engine() { return *engine_; }

 private:
  MonotonicClock clock_;
  std::unique_ptr<CpuRuntime> runtime_;
  std::unique_ptr<EngineLoop> engine_;
};

inline void ExpectSame(const TokenLogprob& a, const TokenLogprob& b) {
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.logprob, b.logprob);
  EXPECT_EQ(a.rank, b.rank);
}

inline void ExpectSame(const std::vector<PromptLogprob>& a, const std::vector<PromptLogprob>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].position, b[i].position);
    ExpectSame(a[i].chosen, b[i].chosen);
    ASSERT_EQ(a[i].top_logprobs.size(), b[i].top_logprobs.size());
    for (size_t k = 0; k < a[i].top_logprobs.size(); ++k) {
      ExpectSame(a[i].top_logprobs[k], b[i].top_logprobs[k]);
    }
  }
}

inline void ExpectSame(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.finish, b.finish);
  EXPECT_EQ(a.tokens, b.tokens);
  ExpectSame(a.prompt_logprobs, b.prompt_logprobs);
  ASSERT_EQ(a.read.has_value(), b.read.has_value());
  if (!a.read) return;
  EXPECT_EQ(a.read->values, b.read->values);
  EXPECT_EQ(a.read->log_sum_exp, b.read->log_sum_exp);
}

}  // namespace skein::testing
