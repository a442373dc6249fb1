#include "cuda/executor/operators/operator_slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/ceil_div.h"

namespace skein::cuda {
namespace {

ModelConfig ConfigOf(int32_t hidden, int32_t heads, int32_t kv_heads, int32_t intermediate) {
  ModelConfig config;
  config.hidden_size = hidden;
  config.num_heads = heads;
  config.num_kv_heads = kv_heads;
  config.head_dim = 128;
  config.intermediate_size = intermediate;
  return config;
}
// The shapes of Qwen3.
ModelConfig Config600m() { return ConfigOf(1024, 16, 8, 3072); }
ModelConfig Config4b() { return ConfigOf(2560, 32, 8, 9728); }
ModelConfig Config8b() { return ConfigOf(4096, 32, 8, 12288); }
ModelConfig Config32b() { return ConfigOf(5120, 64, 8, 25600); }

class Slices {
 public:
  // A prompt of which `begin` tokens are cached.
  Slices(const ModelConfig& config, int32_t begin, int32_t num_tokens, double slice_us = kSliceUs,
         DType dtype = DType::kBf16, bool persistent = false)
      : config_(config), slices_(config_, 1, dtype, dtype, persistent) {
    const int32_t group = config.num_heads / config.num_kv_heads;
    const int32_t tiles = CeilDiv(num_tokens * group, kAttentionRows);
    const int32_t tile_rows = AttentionTileRows(
        WideRows(dtype, config.head_dim), num_tokens * group, int64_t{tiles} * config.num_kv_heads);
    for (int32_t row = 0; row < num_tokens * group; row += tile_rows) {
      tiles_.push_back({0, num_tokens, begin, 0, row, begin + num_tokens});
    }
    slices_.Assign({num_tokens, tiles_, tile_rows, config.local.before, config.local.after},
                   slice_us);
  }

  std::span<const OperatorSlice> Of(int op, bool local = false) const {
    return slices_.Of(op, local);
  }
  int64_t num_tiles() const { return std::ssize(tiles_); }

 private:
  const ModelConfig config_;
  std::vector<AttentionTile> tiles_;
  OperatorSlices slices_;
};

constexpr int kDenseOps[] = {kAttnNorm, kQkv,     kStoreHeads, kAttention,
                             kO,        kMlpNorm, kGateUp,     kDown};

// The slices follow each other and end with the last unit.
void ExpectWhole(std::span<const OperatorSlice> slices, int64_t num_units) {
  int64_t end = 0;
  for (const OperatorSlice& slice : slices) {
    EXPECT_EQ(slice.first, end);
    EXPECT_GT(slice.count, 0);
    EXPECT_GT(slice.us, 0);
    end += slice.count;
  }
  EXPECT_EQ(end, num_units);
}

TEST(OperatorSlices, ShortPromptsHaveNone) {
  for (const ModelConfig& config : {Config600m(), Config4b()}) {
    for (const int32_t num_tokens : {1, 128, 512, 2048}) {
      const Slices slices(config, 0, num_tokens);
      for (const int op : kDenseOps) EXPECT_EQ(slices.Of(op).size(), 1u) << op;
    }
  }
}

TEST(OperatorSlices, NoSliceOfALongPromptIsLong) {
  for (const ModelConfig& config : {Config600m(), Config4b(), Config8b(), Config32b()}) {
    for (const auto& [num_tokens, persistent] : {std::pair{3000, false},
                                                 {3000, true},
                                                 {8192, false},
                                                 {8192, true},
                                                 {16384, false},
                                                 {32768, true}}) {
      SCOPED_TRACE(std::to_string(config.hidden_size) + ", " + std::to_string(num_tokens));
      const Slices slices(config, 0, num_tokens, kSliceUs, DType::kBf16, persistent);
      for (const int op : kDenseOps) {
        ExpectWhole(slices.Of(op), op == kAttention ? slices.num_tiles() : num_tokens);
        const bool wide = (op == kGateUp || op == kDown) && config.hidden_size > 5000;
        const double most_us = wide ? 2 * kSliceUs : kSliceUs;
        for (const OperatorSlice& slice : slices.Of(op)) EXPECT_LE(slice.us, most_us) << op;
      }
    }
  }
}

// Slices of whole turns of the multiprocessors: 11 tiles of rows times 192 of columns are 16 turns
// of 132 blocks. All slices together take as many turns as one launch.
TEST(OperatorSlices, SlicesFillTheMultiprocessors) {
  const Slices slices(Config8b(), 0, 16384);
  EXPECT_EQ(slices.Of(kGateUp).size(), 12u);
  EXPECT_EQ(slices.Of(kGateUp)[0].count, 11 * kSliceRows);
  EXPECT_GE(slices.Of(kDown)[0].count, 2048);
  EXPECT_GE(slices.Of(kQkv)[0].count, 2048);
  // 4 tiles of rows are 1,600 blocks, which are 13 turns and would be 12.1; 6 tiles are 18.2 of 19.
  EXPECT_EQ(Slices(Config32b(), 0, 16384).Of(kGateUp)[0].count, 6 * kSliceRows);
}

// With persistent blocks, tiles of 256 rows: 32 of them times 152 of columns are 37 turns of 132
// blocks, in slices as in one launch.
TEST(OperatorSlices, SlicesFillPersistentBlocks) {
  const Slices slices(Config4b(), 0, 8192, kSliceUs, DType::kBf16, true);
  int64_t turns = 0;
  for (const OperatorSlice& slice : slices.Of(kGateUp)) {
    EXPECT_EQ(slice.count % kPersistentSliceRows, 0);
    turns += CeilDiv(slice.count / kPersistentSliceRows * 152, int64_t{132});
  }
  EXPECT_GT(slices.Of(kGateUp).size(), 1u);
  EXPECT_EQ(turns, 37);
  EXPECT_EQ(slices.Of(kDown).size(), 1u);
  const Slices f32(Config4b(), 0, 8192, kSliceUs, DType::kF32, true);
  EXPECT_EQ(f32.Of(kDown).size(),
            Slices(Config4b(), 0, 8192, kSliceUs, DType::kF32).Of(kDown).size());
}

TEST(OperatorSlices, TilesBehindManyKeysAreLong) {
  const Slices slices(Config8b(), 0, 16384);
  const std::span<const OperatorSlice> attention = slices.Of(kAttention);
  EXPECT_GT(attention.front().count, 2 * attention[attention.size() / 2].count);
  EXPECT_GT(Slices(Config8b(), 60000, 2048).Of(kAttention).size(), 4u);
  ModelConfig local = Config8b();
  local.local.layers = {true};
  local.local.before = 1023;
  const Slices windows(local, 60000, 2048);
  EXPECT_EQ(windows.Of(kAttention, true).size(), 1u);
  EXPECT_GT(windows.Of(kAttention, false).size(), 4u);
}

TEST(OperatorSlices, ExpertsAreCutBetweenExperts) {
  ModelConfig config = ConfigOf(2048, 32, 4, 6144);
  config.num_experts = 128;
  config.experts_per_token = 8;
  config.expert_size = 768;
  EXPECT_EQ(Slices(config, 0, 2048).Of(kExpertGateUp).size(), 1u);
  const Slices slices(config, 0, 16384);
  EXPECT_GT(slices.Of(kExpertGateUp).size(), 2u);
  for (const int op : {kExpertGateUp, kExpertDown}) {
    ExpectWhole(slices.Of(op), 128);
    for (const OperatorSlice& slice : slices.Of(op)) EXPECT_LE(slice.us, kSliceUs);
  }
}

TEST(OperatorSlices, TheShortestSlicesHaveOneUnit) {
  const Slices slices(Config4b(), 0, 200, 0);
  for (const int op : {kQkv, kO, kGateUp, kDown}) EXPECT_EQ(slices.Of(op).size(), 2u);
  EXPECT_EQ(std::ssize(slices.Of(kAttention)), slices.num_tiles());
  const Slices whole(Config4b(), 0, 32768, std::numeric_limits<double>::infinity());
  for (const int op : kDenseOps) EXPECT_EQ(whole.Of(op).size(), 1u);
}

TEST(OperatorSlices, SlowerTypesHaveMoreSlices) {
  const Slices bf16(Config4b(), 0, 8192), f32(Config4b(), 0, 8192, kSliceUs, DType::kF32);
  for (const int op : {kGateUp, kAttention}) {
    EXPECT_GT(f32.Of(op).size(), 3 * bf16.Of(op).size());
  }
}

}  // namespace
}  // namespace skein::cuda
