#include "model/forward_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "testing/shared.h"

namespace skein {
namespace {

using Json = nlohmann::json;

// A loaded model with KV memory for a few sequences.
struct LoadedForTest {
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<ModelWeights> weights;
  std::unique_ptr<RopeAngles> rope;
  AlignedBuffer kv;
  ForwardContext context;

  LoadedForTest(const std::string& dir, DType dtype, Isa isa, int threads, int32_t num_blocks) {
    team = std::make_unique<ThreadTeam>(threads);
    kernels = MakeKernels(isa).value();
    const ModelConfig config = LoadModelConfig(dir).value();
    weights = std::make_unique<ModelWeights>(
        LoadWeights(ModelFiles::Open(dir).value(), config, dtype, *team, {}).value());
    rope = std::make_unique<RopeAngles>(MakeRopeTable(config.rope, config.head_dim),
                                        config.max_position);
    KvLayout layout{dtype, config.num_layers, num_blocks, config.num_kv_heads, config.head_dim};
    kv = AlignedBuffer(layout.total_bytes());
    context = {weights.get(), kernels.get(), rope.get(), layout, kv.data(), team.get()};
  }
};

std::vector<double> LogProbs(const float* logits, int32_t vocab) {
  const double max = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (int32_t i = 0; i < vocab; ++i) sum += std::exp(logits[i] - max);
  std::vector<double> out(vocab);
  for (int32_t i = 0; i < vocab; ++i) out[i] = logits[i] - max - std::log(sum);
  return out;
}

// Logits after every token of a row that begins at `begin`.
std::vector<std::vector<float>> RunRow(ForwardPass& pass, const std::vector<int32_t>& tokens,
                                       int32_t begin, const std::vector<int32_t>& blocks,
                                       int32_t vocab) {
  pass.batch().Clear();
  pass.batch().AddRow(tokens, begin, blocks, false);
  for (size_t i = 0; i < tokens.size(); ++i) pass.batch().logit_tokens.push_back(i);
  pass.Begin();
  std::vector<std::vector<float>> all;
  while (pass.Run(nullptr) == ForwardStatus::kLogits) {
    for (int32_t i = 0; i < pass.num_logit_rows(); ++i) {
      all.emplace_back(pass.logits(i), pass.logits(i) + vocab);
    }
  }
  return all;
}

TEST(ForwardPassTest, Stories260KGeneratesTheGoldenTokens) {
  SKEIN_REQUIRE_SHARED();
  const std::string dir = testing::SharedDir() + "/models/stories260K";
  std::ifstream file(dir + "/golden.json");
  const Json golden = Json::parse(file);
  LoadedForTest model(dir, DType::kF32, SelectIsa().value(), 2, 16);
  ForwardPass pass(model.context, {.max_tokens = 512, .max_logit_rows = 64});
  std::vector<int32_t> blocks(16);
  std::iota(blocks.rbegin(), blocks.rend(), 0);
  const int32_t vocab = model.weights->config.vocab_size;
  for (const Json& prompt : golden["prompts"]) {
    SCOPED_TRACE(prompt["name"].get<std::string>());
    std::vector<int32_t> ids = prompt["prompt_ids"];
    const std::vector<int32_t> expected = prompt["greedy_ids"];
    auto logits = RunRow(pass, ids, 0, blocks, vocab);
    ASSERT_EQ(logits.size(), ids.size());
    double worst = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::vector<double> lp = LogProbs(logits[i].data(), vocab);
      const Json& position = prompt["positions"][i];
      for (size_t j = 0; j < position["top5"].size(); ++j) {
        const int32_t id = position["top5"][j];
        worst = std::max(worst, std::abs(lp[id] - position["logprobs_f64"][j].get<double>()));
      }
    }
    EXPECT_LT(worst, 1e-4);
    std::vector<int32_t> generated;
    std::vector<float> last = logits.back();
    for (int32_t position = ids.size(); generated.size() < expected.size(); ++position) {
      const auto best = std::max_element(last.begin(), last.end());
      generated.push_back(static_cast<int32_t>(best - last.begin()));
      last = RunRow(pass, {generated.back()}, position, blocks, vocab).back();
    }
    EXPECT_EQ(generated, expected);
    std::printf("%s worst %g\n", prompt["name"].get<std::string>().c_str(), worst);
  }
}

}  // namespace
}  // namespace skein
