// Shared prefixes on the real executor. A common prefix is computed once, in the same pass or in an
// earlier one. The logits of each request have the same bits as when it runs alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/cpu_executor.h"
#include "sched/scheduler.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::LoadedModel;
using testing::Logits;

constexpr int32_t kNumBlocks = 64;

class ForestTest
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, const char*, Isa>> {
 protected:
  ForestTest()
      : model_(std::string(SKEIN_SOURCE_DIR "/tests/data/models/") + std::get<0>(GetParam()),
               {.dtype = std::get<1>(GetParam()),
                .quantization = std::get<2>(GetParam()),
                .isa = std::get<3>(GetParam()),
                .num_blocks = kNumBlocks}),
        kv_(model_.context().kv_layout) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
  }

  // The last logits of each request; all requests arrive together.
  std::map<RequestId, Logits> Run(const std::vector<Request>& requests, int32_t token_budget,
                                  bool forests, EngineStats* stats) {
    std::memset(kv_.data(), 0xff, kv_.bytes());  // unwritten memory must not reach a result
    ForwardContext context = model_.context();
    context.kv = kv_.data();
    CpuExecutor executor(context, {.max_tokens = token_budget, .max_logit_rows = 4}, &kv_);
    std::map<RequestId, Logits> logits;
    executor.set_logits_observer([&](const PlanRow& row, const float* values) {
      logits[RequestOf(row.sequence)] = Logits(values, values + model_.vocab());
    });
    EngineConfig config;
    config.scheduler.policies = FindPreset("prelude")->policies;
    config.vocab_size = model_.vocab();
    config.scheduler.max_model_len = 200;
    config.scheduler.num_kv_blocks = kNumBlocks;
    config.scheduler.max_num_seqs = 4;
    config.scheduler.max_num_batched_tokens = token_budget;
    SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
    scheduler_config.policies.forests = forests;
    Scheduler scheduler(scheduler_config);
    for (size_t i = 0; i < requests.size(); ++i) scheduler.Arrive(i, requests[i], 0);
    const std::atomic<bool> never{false};
    while (const StepPlan* plan = scheduler.Plan(0)) {
      const auto task = executor.Begin(*plan);
      EXPECT_EQ(executor.Resume(*task, never), TaskStatus::kDone);
      auto results = executor.Results(*task);
      scheduler.Complete(&results, 0);
      scheduler.CheckIntegrity();
      scheduler.TakeOutputs();
    }
    *stats = scheduler.Stats();
    return logits;
  }

  std::vector<TokenId> RandomTokens(int64_t count) {
    std::vector<TokenId> tokens;
    while (std::ssize(tokens) < count) {
      tokens.push_back(static_cast<TokenId>(random_() % model_.vocab()));
    }
    return tokens;
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  LoadedModel model_;
  KvMemory kv_;
};

TEST_P(ForestTest, SharingAPrefixChangesNoBit) {
  // model/forward/bits_test.cc covers every split of a block.
  const auto some = static_cast<int32_t>(random_() % kBlockTokens);
  for (const int32_t prefix_len : {1, 20, 32, 33, 63, 64, 64 + some}) {
    SCOPED_TRACE("prefix of " + std::to_string(prefix_len));
    const std::vector<TokenId> prefix = RandomTokens(prefix_len);
    std::vector<Request> requests(4);
    std::vector<Logits> alone;
    EngineStats stats;
    for (Request& request : requests) {
      request.prompt = prefix;
      const std::vector<TokenId> own = RandomTokens(1 + static_cast<int64_t>(random_() % 50));
      request.prompt.insert(request.prompt.end(), own.begin(), own.end());
      request.generate().max_tokens = 1;
      alone.push_back(Run({request}, 200, false, &stats).at(0));
      request.group = {1, prefix_len};
    }
    for (const int32_t token_budget : {400, 48}) {
      for (const bool forests : {true, false}) {
        const auto together = Run(requests, token_budget, forests, &stats);
        ASSERT_EQ(together.size(), requests.size());
        for (size_t i = 0; i < requests.size(); ++i) {
          ASSERT_TRUE(testing::SameBits(together.at(i), alone[i]))
              << "request " << i << ", forests " << forests << ", budget " << token_budget;
        }
        // A prefix of one token saves too little for a row of its own.
        EXPECT_EQ(stats.shared_prefixes, forests && prefix_len > 1 ? 1u : 0u);
      }
    }
  }
}

std::vector<Isa> Isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kAmx, Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvxVnni, Isa::kAvx2}) {
    if (MakeKernels(isa).ok()) isas.push_back(isa);
  }
  return isas;
}

INSTANTIATE_TEST_SUITE_P(Models, ForestTest,
                         ::testing::Combine(::testing::Values("llama-linear", "qwen3-bf16"),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::Values("none", "int8", "int4"),
                                            ::testing::ValuesIn(Isas())),
                         [](const auto& param) {
                           std::string name = std::string(std::get<0>(param.param)) + "_" +
                                              std::get<1>(param.param) + "_" +
                                              std::get<2>(param.param) + "_" +
                                              NameOf(std::get<3>(param.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace skein
