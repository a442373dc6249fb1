// Attention tiles over many keys. Beyond 6,144 keys, tiles have fewer rows (AttentionTileRows). A
// tile may have rows of several sequences, and distant rows of one sequence. No bit changes.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "testing/isas.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;

// A model, a sequence of `length` tokens with its angles, and twice as many KV blocks as the
// sequence needs.
class LongModel {
 public:
  LongModel(Isa isa, int threads, int32_t length, const std::string& name = "qwen3-bf16")
      : model_(SKEIN_SOURCE_DIR "/tests/data/models/" + name,
               {.dtype = "bf16",
                .isa = isa,
                .threads = threads,
                .num_blocks = 2 * ((length + kKvBlockTokens - 1) / kKvBlockTokens)}),
        team_(1),
        angles_(MakeRopeTable(config().rope, config().head_dim), length, team_),
        tokens_(length) {
    std::mt19937_64 random(11);
    for (int32_t& token : tokens_) token = static_cast<int32_t>(random() % model_.vocab());
  }

  ForwardPass MakePass(int32_t max_tokens, bool share_attention = true) const {
    ForwardContext context = model_.context();
    context.rope = context.local_rope = &angles_;
    context.share_attention = share_attention;
    return ForwardPass(context, {.max_tokens = max_tokens, .max_logit_rows = 64});
  }
  // The logits after each of tokens [begin, end), computed alone.
  std::vector<Logits> Run(ForwardPass* pass, int32_t begin, int32_t end,
                          const std::vector<int32_t>& blocks) const {
    return testing::RunAlone(pass, tokens_, begin, end, blocks, model_.vocab());
  }
  // The logits after the tokens at `positions`, in one pass; each token is a row with its own
  // table. `*num_calls`: the number of attention calls.
  std::vector<Logits> Decode(ForwardPass* pass, const std::vector<int32_t>& positions,
                             const std::vector<std::vector<int32_t>>& tables, int64_t* num_calls) {
    pass->batch().Clear();
    for (size_t r = 0; r < positions.size(); ++r) {
      pass->batch().AddRow(std::span(tokens_).subspan(positions[r], 1), positions[r], tables[r],
                           true);
    }
    const int64_t before = model_.kernels().num_attention_calls();
    std::vector<Logits> logits = testing::RunPass(pass, model_.vocab());
    *num_calls = model_.kernels().num_attention_calls() - before;
    return logits;
  }

  // The logits after the tokens at `positions`, ascending, in a pass over the whole sequence.
  // `*num_calls`: the number of attention calls.
  std::vector<Logits> RunOutputs(ForwardPass* pass, const std::vector<int32_t>& positions,
                                 const std::vector<int32_t>& blocks, int64_t* num_calls) {
    pass->batch().Clear();
    pass->batch().AddRow(tokens_, 0, blocks, false);
    pass->batch().logit_tokens = positions;
    const int64_t before = model_.kernels().num_attention_calls();
    std::vector<Logits> logits = testing::RunPass(pass, model_.vocab());
    *num_calls = model_.kernels().num_attention_calls() - before;
    return logits;
  }

  const ModelConfig& config() const { return model_.config(); }

 private:
  LoadedModel model_;
  ThreadTeam team_;
  const RopeAngles angles_;
  std::vector<int32_t> tokens_;
};

class ForwardLongTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!MakeKernels(GetParam()).ok()) GTEST_SKIP() << "not on this machine";
  }

  // Computes the whole sequence, in tiles of 64 rows and in smaller tiles. Then computes the tokens
  // behind `first` in chunks that never fill a tile of either size, and from `one_by_one` on single
  // tokens.
  static void ExpectTheBitsOfTheWhole(const LongModel& model, int32_t length, int32_t first,
                                      int32_t one_by_one) {
    ForwardPass pass = model.MakePass(length);
    const std::vector<Logits> whole = model.Run(&pass, 0, length, Blocks(0, length));
    ASSERT_EQ(std::ssize(whole), length);
    const std::vector<int32_t> blocks = Blocks(CeilDiv(length, kKvBlockTokens), length);
    model.Run(&pass, 0, first, blocks);
    for (int32_t begin = first, end = begin; begin < length; begin = end) {
      end = begin < one_by_one ? std::min(begin + 13, one_by_one) : begin + 1;
      const std::vector<Logits> logits = model.Run(&pass, begin, end, blocks);
      for (int32_t i = begin; i < end; ++i) {
        ASSERT_TRUE(testing::SameBits(logits[i - begin], whole[i])) << "position " << i;
      }
    }
  }
};

TEST_P(ForwardLongTest, SmallerTilesHaveTheSameBits) {
  constexpr int32_t kLength = 6400, kFirst = 6100, kOneByOne = 6385;
  const LongModel model(GetParam(), 2, kLength);
  ExpectTheBitsOfTheWhole(model, kLength, kFirst, kOneByOne);
}

// Decode rows of one sequence at several positions. Their tables share all blocks except the last
// few. Two of the tables share one step of keys less.
TEST_P(ForwardLongTest, DecodeRowsOfOnePrefixHaveTheSameBits) {
  constexpr int32_t kLength = 6400, kPosition = 6390, kShared = 6144, kRows = 8;
  LongModel model(GetParam(), 2, kLength);
  ForwardPass pass = model.MakePass(kLength);
  const std::vector<Logits> whole = model.Run(&pass, 0, kLength, Blocks(0, kLength));
  ASSERT_EQ(whole.size(), size_t{kLength});
  std::vector<int32_t> positions(kRows);
  std::vector<std::vector<int32_t>> tables(kRows, Blocks(0, kLength));
  int32_t next_block = kLength / kKvBlockTokens;
  for (int32_t r = 0; r < kRows; ++r) {
    const int32_t shared = r % 4 == 2 ? kShared - kKeysPerAmxStep : kShared;
    positions[r] = kPosition + r;
    for (size_t i = shared / kKvBlockTokens; i < tables[r].size(); ++i) tables[r][i] = next_block++;
    model.Run(&pass, shared, positions[r], tables[r]);
  }
  for (const bool share : {false, true}) {
    ForwardPass decode = model.MakePass(kRows, share);
    int64_t num_calls = 0;
    const std::vector<Logits> logits = model.Decode(&decode, positions, tables, &num_calls);
    ASSERT_EQ(logits.size(), size_t{kRows});
    for (int32_t r = 0; r < kRows; ++r) {
      EXPECT_TRUE(testing::SameBits(logits[r], whole[positions[r]])) << share << " row " << r;
    }
    // All eight rows share one tile, or each row has its own tile.
    const int32_t num_tiles = share ? 1 : kRows;
    EXPECT_EQ(num_calls, num_tiles * model.config().num_layers * model.config().num_kv_heads);
  }
}

// In the last layer, a tile may contain the first positions of a sequence together with some of its
// third segment of keys. The bits are those of each position alone, and those of a pass in which
// every position has an output.
TEST_P(ForwardLongTest, OutputTokensOfOneTileMayLieSegmentsApart) {
  constexpr int32_t kLength = 6400;
  LongModel model(GetParam(), 2, kLength);
  ForwardPass pass = model.MakePass(kLength);
  const std::vector<int32_t> blocks = Blocks(0, kLength);
  const std::vector<Logits> whole = model.Run(&pass, 0, kLength, blocks);
  ASSERT_EQ(whole.size(), size_t{kLength});
  // The last keys of a segment and the first of the next, then positions at regular distances, up
  // to the range of smaller tiles.
  const std::vector<int32_t> few = {
      3, kKeysPerSegment - 1, kKeysPerSegment, 2 * kKeysPerSegment - 1, 2 * kKeysPerSegment, 5000};
  std::vector<int32_t> many;
  for (int32_t i = 0; i < 20; ++i) many.push_back(3 + 336 * i);
  const struct {
    std::vector<int32_t> wanted;
    int32_t num_tiles;
  } cases[] = {{{}, 0}, {few, 1}, {{3}, 1}, {{5000}, 1}, {many, 2}};
  int64_t calls_before_last = 0;  // attention calls before the last layer
  for (const auto& [wanted, num_tiles] : cases) {
    SCOPED_TRACE(std::to_string(wanted.size()) + " wanted");
    int64_t num_calls = 0;
    const std::vector<Logits> logits = model.RunOutputs(&pass, wanted, blocks, &num_calls);
    if (wanted.empty()) calls_before_last = num_calls;
    EXPECT_EQ(num_calls - calls_before_last, num_tiles * model.config().num_kv_heads);
    ASSERT_EQ(logits.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(testing::SameBits(logits[i], whole[wanted[i]])) << "position " << wanted[i];
    }
  }
  EXPECT_GT(calls_before_last, 0);
}

// Tiles get fewer rows than they could hold, so that more threads have tickets.
TEST_P(ForwardLongTest, FewRowsOnManyThreadsAreCutFiner) {
  constexpr int32_t kShared = kKeysPerAmxStep, kRows = 16, kLength = 2 * kShared;
  std::vector<Logits> on_one;
  for (const int threads : {1, 8}) {
    LongModel model(GetParam(), threads, kLength);
    ForwardPass pass = model.MakePass(kLength);
    model.Run(&pass, 0, kShared, Blocks(0, kShared));
    const std::vector<int32_t> positions(kRows, kShared);
    std::vector<std::vector<int32_t>> tables(kRows, Blocks(0, kShared));
    for (int32_t r = 0; r < kRows; ++r) tables[r].push_back(kShared / kKvBlockTokens + r);
    int64_t num_calls = 0;
    const std::vector<Logits> logits = model.Decode(&pass, positions, tables, &num_calls);
    ASSERT_EQ(logits.size(), size_t{kRows});
    // 32 query rows for each of two KV heads: one tile each, or tiles of 16 rows.
    ASSERT_EQ(model.config().num_heads / model.config().num_kv_heads, 2);
    ASSERT_EQ(model.config().num_kv_heads, 2);
    EXPECT_EQ(num_calls, (threads == 1 ? 1 : 2) * 2 * model.config().num_layers);
    if (threads == 1) on_one = logits;
    for (int32_t r = 0; r < kRows; ++r) {
      EXPECT_TRUE(testing::SameBits(logits[r], on_one[r])) << threads << " threads, row " << r;
    }
  }
}

// Windows that begin in one segment of keys and end in the next, in all layers or in some.
TEST_P(ForwardLongTest, WindowsHaveTheSameBits) {
  constexpr int32_t kLength = 2 * kKeysPerSegment + 60, kFirst = 2 * kKeysPerSegment - 100;
  constexpr int32_t kOneByOne = kLength - 30;
  for (const char* name : {"mistral-window", "qwen2-window"}) {
    SCOPED_TRACE(name);
    const LongModel model(GetParam(), 2, kLength, name);
    ExpectTheBitsOfTheWhole(model, kLength, kFirst, kOneByOne);
  }
}

// In a local layer, the tokens of a tile are near each other, so that a walk over their keys is no
// longer than their windows.
TEST_P(ForwardLongTest, DistantTokensOfLocalLayersShareNoTile) {
  constexpr int32_t kLength = 3000;
  LongModel model(GetParam(), 1, kLength, "mistral-window");
  ASSERT_TRUE(model.config().IsLocal(model.config().num_layers - 1));
  ForwardPass pass = model.MakePass(kLength);
  const std::vector<int32_t> blocks = Blocks(0, kLength);
  const std::vector<Logits> whole = model.Run(&pass, 0, kLength, blocks);
  const std::vector<int32_t> wanted = {3, 10, 2047, 2048, 2900};
  int64_t all_calls = 0, num_calls = 0;
  model.RunOutputs(&pass, {}, blocks, &all_calls);
  const std::vector<Logits> logits = model.RunOutputs(&pass, wanted, blocks, &num_calls);
  EXPECT_EQ(num_calls - all_calls, 3 * model.config().num_kv_heads);
  ASSERT_EQ(logits.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(testing::SameBits(logits[i], whole[wanted[i]])) << "position " << wanted[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ForwardLongTest,
                         ::testing::Values(Isa::kAmx, Isa::kAvx512Bf16, Isa::kAvx512Bf16Fma,
                                           Isa::kAvx512, Isa::kAvxVnni, Isa::kAvx2),
                         testing::IsaName);

}  // namespace
}  // namespace skein
