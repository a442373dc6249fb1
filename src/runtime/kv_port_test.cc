// Prefill in one runtime and decode in another: only the blocks are transferred.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/cpu_runtime.h"

namespace skein {
namespace {

constexpr int32_t kPromptTokens = 77;
constexpr int32_t kNewTokens = 40;  // the last tokens go into a block that was not transferred

std::unique_ptr<CpuRuntime> Load(int32_t num_blocks, int32_t threads, KvStorage storage) {
  return CpuRuntime::Load({.model_dir = SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                           .threads = threads,
                           .max_model_len = 128,
                           .max_num_batched_tokens = 128,
                           .max_num_seqs = 1,
                           .kv_storage = storage,
                           .num_kv_blocks = num_blocks})
      .value();
}

// One sequence, whose steps are planned by hand.
struct PortSequence {
  std::vector<TokenId> tokens;
  GenerateSpec generate;

  // Computes all tokens from `begin` on and draws the next token.
  OutputToken Draw(CpuRuntime& runtime, int32_t begin, const std::vector<BlockId>& table) {
    const DrawSpec draw = {&generate, 0, tokens, kPromptTokens};
    const PlanRow row = {0, begin, std::span(tokens).subspan(begin), table, std::span(&draw, 1)};
    const StepPlan plan =
        begin == 0 ? StepPlan(MixedPlan{.prefills = {row}}) : StepPlan(DecodePlan{.rows = {row}});
    const std::atomic<bool> never{false};
    const std::unique_ptr<Task> task = runtime.executor().Begin(plan);
    EXPECT_EQ(runtime.executor().Resume(*task, never), TaskStatus::kDone);
    OutputToken token = runtime.executor().Results(*task).draws.at(0).token;
    tokens.push_back(token.token);
    return token;
  }
};

PortSequence NewSequence() {
  PortSequence sequence;
  for (int32_t i = 0; i < kPromptTokens; ++i) sequence.tokens.push_back((7 * i + i * i) % 100);
  sequence.generate.sampling.temperature = 1;
  sequence.generate.sampling.seed = 5;
  sequence.generate.num_logprobs = 3;
  return sequence;
}

void ExpectSame(const OutputToken& a, const OutputToken& b) {
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.chosen.logprob, b.chosen.logprob);
  ASSERT_EQ(a.top_logprobs.size(), b.top_logprobs.size());
  for (size_t i = 0; i < a.top_logprobs.size(); ++i) {
    EXPECT_EQ(a.top_logprobs[i].token, b.top_logprobs[i].token);
    EXPECT_EQ(a.top_logprobs[i].logprob, b.top_logprobs[i].logprob);
  }
}

class KvPortTest : public ::testing::TestWithParam<KvStorage> {};

TEST_P(KvPortTest, DecodingGoesOnElsewhereWithTheSameBits) {
  const std::unique_ptr<CpuRuntime> prefill = Load(9, 1, KvStorage::kPaged);
  const std::unique_ptr<CpuRuntime> decode = Load(6, 2, GetParam());
  const std::vector<BlockId> here = {8, 2, 5, 0};
  std::vector<BlockId> there = {3, 0, 4, 1};
  if (GetParam() == KvStorage::kContiguous) std::iota(there.begin(), there.end(), 0);
  // The blocks still have the data of an earlier owner.
  PortSequence other = NewSequence();
  std::ranges::reverse(other.tokens);
  other.Draw(*decode, 0, there);

  PortSequence stays = NewSequence(), moves = NewSequence();
  ExpectSame(stays.Draw(*prefill, 0, here), moves.Draw(*prefill, 0, here));
  ASSERT_EQ(prefill->kv_port().port_bytes(), decode->kv_port().port_bytes());
  std::vector<std::byte> wire(prefill->kv_port().port_bytes());
  for (int32_t i = 0; i < BlocksFor(kPromptTokens); ++i) {
    prefill->kv_port().ExportBlock(here[i], wire);
    decode->kv_port().ImportBlock(there[i], wire);
  }
  for (int32_t i = 0; i < kNewTokens; ++i) {
    const int32_t begin = kPromptTokens + i;
    ExpectSame(stays.Draw(*prefill, begin, here), moves.Draw(*decode, begin, there));
  }
}

INSTANTIATE_TEST_SUITE_P(Storages, KvPortTest,
                         ::testing::Values(KvStorage::kPaged, KvStorage::kContiguous),
                         [](const auto& param) {
                           return param.param == KvStorage::kPaged ? "Paged" : "Contiguous";
                         });

}  // namespace
}  // namespace skein
