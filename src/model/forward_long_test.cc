// Beyond 6,144 keys attention tiles have fewer rows (ForwardPass::TileTokens): that changes no bit.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;

class ForwardLongTest : public ::testing::TestWithParam<Isa> {};

TEST_P(ForwardLongTest, SmallerTilesHaveTheSameBits) {
  constexpr int32_t kLength = 6400, kFirst = 6100, kOneByOne = 6385;
  if (!MakeKernels(GetParam()).ok()) GTEST_SKIP() << "not on this machine";
  const LoadedModel model(SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
                          {.isa = GetParam(), .threads = 2, .num_blocks = 2 * kLength / 32});
  ThreadTeam team(1);
  const RopeAngles angles(MakeRopeTable(model.config().rope, model.config().head_dim), kLength,
                          team);
  ForwardContext context = model.context();
  context.rope = &angles;
  ForwardPass pass(context, {.max_tokens = kLength, .max_logit_rows = 64});
  std::mt19937_64 random(11);
  std::vector<int32_t> tokens(kLength);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % model.vocab());
  const auto run = [&](int32_t begin, int32_t end, int32_t first_block) {
    return testing::RunAlone(&pass, tokens, begin, end, Blocks(first_block, kLength),
                             model.vocab());
  };
  // Whole, in tiles of 64 rows and of fewer; then behind kFirst in chunks that never fill a tile
  // of either size, and at the end one by one.
  const std::vector<Logits> whole = run(0, kLength, 0);
  ASSERT_EQ(whole.size(), size_t{kLength});
  run(0, kFirst, kLength / 32);
  for (int32_t begin = kFirst, end = begin; begin < kLength; begin = end) {
    end = begin < kOneByOne ? std::min(begin + 13, kOneByOne) : begin + 1;
    const std::vector<Logits> logits = run(begin, end, kLength / 32);
    for (int32_t i = begin; i < end; ++i) {
      ASSERT_TRUE(testing::SameBits(logits[i - begin], whole[i])) << "position " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ForwardLongTest, ::testing::Values(Isa::kAmx, Isa::kAvx512),
                         [](const auto& param) { return std::string(NameOf(param.param)); });

}  // namespace
}  // namespace skein
