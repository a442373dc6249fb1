// In the last layer, only the output tokens are active at the end. The outputs, and the keys and
// values that are kept, have the bits of a pass in which every token is an output token.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::kAllOutputs;
using testing::LoadedModel;
using testing::Logits;
using testing::SameBits;

constexpr int32_t kMaxWantedTokens = 512;
constexpr int32_t kPositions = 512;
constexpr int32_t kLongestRow = 150;  // tokens of the longest row

// Tokens [begin, size) of a sequence. The tokens before `begin` are in the cache.
struct WantedRow {
  std::vector<int32_t> tokens;
  int32_t begin = 0;
  std::vector<int32_t> blocks;  // of the whole sequence
  std::vector<int32_t> wanted;  // output tokens' positions, ascending
};

// A decoder with angles for kPositions positions, whatever its config says.
class Decoder {
 public:
  Decoder(const std::string& name, const LoadedModel::Options& options)
      : model_(std::string(SKEIN_SOURCE_DIR "/tests/data/models/") + name, options),
        team_(1),
        angles_(MakeRopeTable(config().rope, config().head_dim), kPositions, team_) {}

  ForwardContext context() const {
    ForwardContext context = model_.context();
    context.rope = &angles_;
    return context;
  }
  testing::StoppingKernels& kernels() { return model_.kernels(); }
  const ModelConfig& config() const { return model_.config(); }
  int32_t vocab() const { return model_.vocab(); }

 private:
  LoadedModel model_;
  ThreadTeam team_;
  const RopeAngles angles_;
};

// The references use KV blocks [0, 16); the tests use the other blocks.
class OutputTokensTest
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, const char*, Isa>> {
 protected:
  OutputTokensTest() {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    model_ = Load(1);
  }

  static std::unique_ptr<Decoder> Load(int threads, int32_t num_blocks = 256) {
    const auto& [name, dtype, quantization, isa] = GetParam();
    return std::make_unique<Decoder>(name, LoadedModel::Options{.dtype = dtype,
                                                                .quantization = quantization,
                                                                .isa = isa,
                                                                .threads = threads,
                                                                .num_blocks = num_blocks});
  }

  std::vector<int32_t> RandomTokens(int32_t n) {
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % model_->vocab());
    return tokens;
  }

  // Rows with some, the last, all or none of their tokens as output tokens.
  std::vector<WantedRow> MakeRows() {
    std::vector<WantedRow> rows;
    int32_t next_block = 16;
    const auto add = [&](int32_t size, int32_t begin) -> WantedRow& {
      rows.push_back({RandomTokens(size), begin, Blocks(next_block, size), {}});
      next_block += static_cast<int32_t>(rows.back().blocks.size());
      return rows.back();
    };
    add(90, 0);
    WantedRow& some = add(kLongestRow, 0);
    for (int32_t i = 0; i < kLongestRow; ++i) {
      if (random_() % 4 == 0) some.wanted.push_back(i);
    }
    add(1, 0).wanted = {0};
    add(100, 37).wanted = {99};
    add(70, 64).wanted = {64, 65, 66, 67, 68, 69};
    add(60, 33);
    return rows;
  }

  // The logits after each token of a row, in a pass of its own.
  std::vector<Logits> Reference(const WantedRow& row) const {
    const auto size = static_cast<int32_t>(row.tokens.size());
    ForwardPass pass(model_->context(), {.max_tokens = kMaxWantedTokens, .max_logit_rows = 24});
    return testing::RunAlone(&pass, row.tokens, 0, size, Blocks(0, size), model_->vocab());
  }

  std::vector<Logits> Expected(const std::vector<WantedRow>& rows) const {
    std::vector<Logits> expected;
    for (const WantedRow& row : rows) {
      const std::vector<Logits> all = Reference(row);
      for (const int32_t position : row.wanted) expected.push_back(all[position]);
    }
    return expected;
  }

  // Restores the initial content of these blocks, which is NaN.
  static void Forget(const ForwardContext& context, const std::vector<int32_t>& blocks) {
    const KvLayout& layout = context.kv_layout;
    for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
      for (const int32_t block : blocks) {
        std::memset(context.kv + layout.Offset(layer, block, 0), 0xff, layout.block_bytes());
      }
    }
  }

  // Computes each row's prefix in a pass without outputs, and clears everything else in the rows'
  // blocks.
  static void ComputePrefixes(const Decoder& model, const std::vector<WantedRow>& rows) {
    for (const WantedRow& row : rows) Forget(model.context(), row.blocks);
    ForwardPass pass(model.context(), {.max_tokens = kMaxWantedTokens});
    for (const WantedRow& row : rows) {
      if (row.begin == 0) continue;
      pass.batch().AddRow(std::span(row.tokens).first(row.begin), 0, row.blocks, false);
    }
    EXPECT_TRUE(testing::RunPass(&pass, model.vocab()).empty());
  }

  // Lays the rows end to end. The pool keeps all keys and values of the rows, or only those of the
  // prefix.
  static void Fill(ForwardPass* pass, const std::vector<WantedRow>& rows, bool keep) {
    ForwardBatch& batch = pass->batch();
    batch.Clear();
    for (const WantedRow& row : rows) {
      const size_t before = (row.begin + kKvBlockTokens - 1) / kKvBlockTokens;
      const int32_t first = batch.num_tokens();
      batch.AddRow(std::span(row.tokens).subspan(row.begin), row.begin,
                   std::span(row.blocks).first(keep ? row.blocks.size() : before), false);
      for (const int32_t position : row.wanted) {
        batch.logit_tokens.push_back(first + position - row.begin);
      }
    }
  }

  static ForwardLimits Limits(int32_t chunk, ChunkOutputs outputs) {
    return {.max_tokens = kMaxWantedTokens,
            .max_logit_rows = 24,
            .chunk_tokens = chunk,
            .max_own_blocks = 40,
            .chunk_outputs = outputs};
  }

  // Stops the pass before the gather operator: the last layer's first product sets the stop flag.
  // Then continues. Returns the logits; `*num_gather_tickets` is the number of that operator's
  // tickets.
  static std::vector<Logits> RunThroughGather(ForwardPass* pass, Decoder* model,
                                              int32_t* num_gather_tickets) {
    std::atomic<bool>& stop = model->kernels().stop();
    const PackedWeight* const qkv = &model->context().weights->layers.back().qkv;
    model->kernels().set_gemm_observer([&stop, qkv](const GemmCall& call) {
      if (call.w == qkv) stop = true;
    });
    *num_gather_tickets = 0;
    std::vector<Logits> all;
    pass->Begin();
    for (;;) {
      const ForwardStatus status = pass->Run(&stop);
      if (status == ForwardStatus::kDone) break;
      if (status == ForwardStatus::kLogits) {
        for (int32_t i = 0; i < pass->num_logit_rows(); ++i) {
          all.emplace_back(pass->logits(i), pass->logits(i) + model->vocab());
        }
        continue;
      }
      if (pass->op().name() == "gather") {
        EXPECT_EQ(pass->position().next_ticket, 0);
        *num_gather_tickets = pass->num_tickets();
      }
      stop = false;
    }
    model->kernels().set_gemm_observer({});
    return all;
  }

  static void ExpectSame(const std::vector<Logits>& a, const std::vector<Logits>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(SameBits(a[i], b[i])) << "output " << i;
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  std::unique_ptr<Decoder> model_;
};

TEST_P(OutputTokensTest, HaveTheBitsOfAPassWithOutputsOfAllTokens) {
  const std::vector<WantedRow> rows = MakeRows();
  const std::vector<Logits> expected = Expected(rows);
  ASSERT_GE(expected.size(), 8u);
  for (const int threads : {1, 2}) {
    const auto model = Load(threads);
    for (const ChunkOutputs outputs : kAllOutputs) {
      for (const int32_t chunk : {0, 1, 32, 50}) {
        for (const bool keep : {true, false}) {
          SCOPED_TRACE(std::to_string(chunk) + " tokens, outputs " + std::to_string(int(outputs)) +
                       (keep ? ", kept" : "") + ", threads " + std::to_string(threads));
          ComputePrefixes(*model, rows);
          ForwardPass pass(model->context(), Limits(chunk, outputs));
          Fill(&pass, rows, keep);
          ASSERT_NO_FATAL_FAILURE(ExpectSame(testing::RunPass(&pass, model->vocab()), expected));
        }
      }
    }
  }
}

// The steps before the last step of a prompt have no outputs. Their keys and values have the bits
// of a pass in which every token has an output, in the last layer, too.
TEST_P(OutputTokensTest, StepsWithoutOutputsStoreTheSameKeysAndValues) {
  const WantedRow row = {RandomTokens(kLongestRow), 0, {}, {}};
  const std::vector<Logits> reference = Reference(row);
  const ForwardContext context = model_->context();
  const KvLayout& layout = context.kv_layout;
  ForwardPass pass(context, {.max_tokens = kMaxWantedTokens, .chunk_tokens = 48});
  const std::vector<int32_t> blocks = Blocks(20, kLongestRow);
  for (const int32_t step : {1, 20, 32, 77, kLongestRow}) {
    SCOPED_TRACE("steps of " + std::to_string(step));
    Forget(context, blocks);
    std::vector<Logits> logits;
    for (int32_t begin = 0; begin < kLongestRow; begin += step) {
      const int32_t end = std::min(begin + step, kLongestRow);
      pass.batch().Clear();
      pass.batch().AddRow(std::span(row.tokens).subspan(begin, end - begin), begin, blocks,
                          end == kLongestRow);
      logits = testing::RunPass(&pass, model_->vocab());
    }
    ASSERT_EQ(logits.size(), 1u);
    EXPECT_TRUE(SameBits(logits[0], reference[kLongestRow - 1]));
    for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
      for (size_t i = 0; i < blocks.size(); ++i) {
        const auto block = static_cast<int32_t>(i);
        const std::byte* expected = context.kv + layout.Offset(layer, block, 0);
        const std::byte* got = context.kv + layout.Offset(layer, blocks[i], 0);
        EXPECT_EQ(std::memcmp(got, expected, layout.block_bytes()), 0)
            << "layer " << layer << " block " << block;
      }
    }
  }
}

// A pass without outputs ends inside the last layer, when the layer's outputs may still be
// elsewhere. This must not affect later passes.
TEST_P(OutputTokensTest, APassAfterOneWithoutOutputsIsAsGoodAsNew) {
  const std::vector<WantedRow> rows = MakeRows();
  const std::vector<Logits> expected = Expected(rows);
  ASSERT_GE(expected.size(), 8u);
  std::vector<WantedRow> unread = rows;
  for (WantedRow& row : unread) row.wanted.clear();
  for (const ChunkOutputs outputs : kAllOutputs) {
    for (const int32_t chunk : {0, 32}) {
      for (const bool keep : {true, false}) {
        SCOPED_TRACE(std::to_string(chunk) + " tokens, outputs " + std::to_string(int(outputs)) +
                     (keep ? ", kept" : ""));
        ForwardPass pass(model_->context(), Limits(chunk, outputs));
        for (const bool read : {false, true, true, false, false, true}) {
          ComputePrefixes(*model_, rows);
          Fill(&pass, read ? rows : unread, keep);
          ASSERT_NO_FATAL_FAILURE(ExpectSame(testing::RunPass(&pass, model_->vocab()),
                                             read ? expected : std::vector<Logits>()));
        }
      }
    }
  }
}

// In the last layer, the tiles of attention contain only output tokens.
TEST_P(OutputTokensTest, TheLastLayersAttentionIsOfOutputTokens) {
  if (model_->config().has_local_layers()) {
    GTEST_SKIP() << "tiles of local layers hold tokens that lie together (long_test.cc)";
  }
  const ModelConfig& c = model_->config();
  const std::vector<int32_t> tokens = RandomTokens(kLongestRow);
  const std::vector<int32_t> blocks = Blocks(20, kLongestRow);
  ForwardPass pass(model_->context(), {.max_tokens = kMaxWantedTokens, .max_logit_rows = 24});
  const auto calls = [&](const std::vector<int32_t>& wanted) {
    pass.batch().Clear();
    pass.batch().AddRow(tokens, 0, blocks, false);
    pass.batch().logit_tokens = wanted;
    const int64_t before = model_->kernels().num_attention_calls();
    EXPECT_EQ(testing::RunPass(&pass, model_->vocab()).size(), wanted.size());
    return model_->kernels().num_attention_calls() - before;
  };
  std::vector<int32_t> all(kLongestRow);
  std::iota(all.begin(), all.end(), 0);
  const int64_t tile_tokens = kMaxQueryRows / (c.num_heads / c.num_kv_heads);
  const int64_t num_tiles = (kLongestRow + tile_tokens - 1) / tile_tokens;
  const int64_t before_last = num_tiles * c.num_kv_heads * (c.num_layers - 1);
  EXPECT_EQ(calls(all), num_tiles * c.num_kv_heads * c.num_layers);
  EXPECT_EQ(calls({kLongestRow - 1}), before_last + c.num_kv_heads);
  EXPECT_EQ(calls({3, 50, 51, 120}), before_last + c.num_kv_heads);  // the one tile skips positions
  EXPECT_EQ(calls({}), before_last);
}

// Stops after every kernel call and continues, with every granularity.
TEST_P(OutputTokensTest, AStopAnywhereChangesNothing) {
  std::vector<WantedRow> rows;
  rows.push_back({RandomTokens(20), 0, Blocks(20, 20), {7, 19}});
  rows.push_back({RandomTokens(3), 0, Blocks(24, 3), {}});
  rows.push_back({RandomTokens(2), 0, Blocks(28, 2), {0, 1}});
  const std::vector<Logits> expected = Expected(rows);
  const std::vector<WantedRow> others = {{RandomTokens(6), 0, Blocks(30, 6), {2}}};
  const std::vector<Logits> others_expected = Expected(others);
  testing::StoppingKernels& kernels = model_->kernels();
  for (const ChunkOutputs outputs : kAllOutputs) {
    SCOPED_TRACE("outputs " + std::to_string(int(outputs)));
    const int32_t chunk = outputs == ChunkOutputs::kInPlace ? 0 : 16;
    ForwardPass pass(model_->context(), Limits(chunk, outputs));
    ForwardPass other(model_->context(), Limits(chunk, outputs));
    bool before_gather = false;  // whether a stop was just before the gather operator
    // Runs the pass. Stops it after `first` calls, then after every `between` calls.
    const auto run = [&](int64_t first, int64_t between, StopAt stop_at, int* num_stops) {
      Fill(&pass, rows, false);
      pass.Begin();
      std::vector<Logits> all;
      kernels.stop() = false;
      kernels.StopAfter(first);
      for (;;) {
        const ForwardStatus status = pass.Run(&kernels.stop(), stop_at);
        if (status == ForwardStatus::kDone) break;
        if (status == ForwardStatus::kLogits) {
          for (int32_t i = 0; i < pass.num_logit_rows(); ++i) {
            all.emplace_back(pass.logits(i), pass.logits(i) + model_->vocab());
          }
          continue;
        }
        ++*num_stops;
        before_gather |= pass.op().name() == "gather";
        kernels.StopAfter(-1);
        Fill(&other, others, false);
        ExpectSame(testing::RunPass(&other, model_->vocab()), others_expected);
        kernels.stop() = false;
        kernels.StopAfter(between);
      }
      kernels.stop() = false;
      kernels.StopAfter(-1);
      return all;
    };
    int num_stops = 0;
    const int64_t before = kernels.num_calls();
    ASSERT_NO_FATAL_FAILURE(ExpectSame(run(-1, -1, StopAt::kTicket, &num_stops), expected));
    const int64_t num_calls = kernels.num_calls() - before;
    EXPECT_EQ(num_stops, 0);
    for (int64_t k = 0; k < num_calls; ++k) {
      ASSERT_NO_FATAL_FAILURE(ExpectSame(run(k, -1, StopAt::kTicket, &num_stops), expected));
    }
    // A call in the last ticket causes no stop, all others do.
    EXPECT_GT(num_stops, num_calls / 2);
    // The collect operator makes no kernel call either, so the stop is then before that operator.
    EXPECT_EQ(before_gather, outputs != ChunkOutputs::kCollected);
    for (const StopAt stop_at : {StopAt::kOperator, StopAt::kLayer}) {
      num_stops = 0;
      ASSERT_NO_FATAL_FAILURE(ExpectSame(run(0, 0, stop_at, &num_stops), expected));
      EXPECT_GE(num_stops, model_->config().num_layers);
    }
  }
}

// There are enough rows for several gather tickets on two threads. q of llama-linear is 40 wide, so
// its last ticket moves less than a whole piece.
TEST_P(OutputTokensTest, ManyRowsAfterOneWithoutOutputs) {
  constexpr int32_t kRows = 18, kRowTokens = 256, kBlocksEach = kRowTokens / kKvBlockTokens;
  std::vector<Logits> all;
  for (const bool whole : {true, false}) {
    const auto model = Load(2, kRows * kBlocksEach);
    ForwardPass pass(model->context(), {.max_tokens = kRows * kRowTokens});
    std::mt19937_64 random(seed_);
    std::vector<std::vector<int32_t>> blocks(kRows);
    for (int32_t r = 0; r < kRows; ++r) {
      std::vector<int32_t> tokens(kRowTokens);
      for (int32_t& token : tokens) token = static_cast<int32_t>(random() % model->vocab());
      blocks[r] = Blocks(r * kBlocksEach, kRowTokens);
      pass.batch().AddRow(tokens, 0, blocks[r], false);
      for (int32_t i = whole ? 0 : 1; i < kRowTokens; ++i) {
        pass.batch().logit_tokens.push_back(r * kRowTokens + i);
      }
    }
    int32_t num_gather_tickets = 0;
    std::vector<Logits> logits = RunThroughGather(&pass, model.get(), &num_gather_tickets);
    if (whole) {
      EXPECT_EQ(num_gather_tickets, 0);
      all = std::move(logits);
      continue;
    }
    EXPECT_GE(num_gather_tickets, 2);
    ASSERT_EQ(logits.size(), size_t{kRows * (kRowTokens - 1)});
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t i = 1; i < kRowTokens; ++i) {
        ASSERT_TRUE(SameBits(logits[r * (kRowTokens - 1) + i - 1], all[r * kRowTokens + i]))
            << "row " << r << " token " << i;
      }
    }
  }
}

// The output tokens of rows with a common prefix share one tile in the last layer.
TEST_P(OutputTokensTest, RowsOfOnePrefixShareATile) {
  if (model_->config().has_local_layers()) {
    GTEST_SKIP() << "tiles of local layers hold tokens that lie together (long_test.cc)";
  }
  constexpr int32_t kRows = 4, kNew = 10;
  const ModelConfig& c = model_->config();
  const int32_t shared =
      KeysPerStep(model_->kernels().isa(), model_->context().kv_layout.dtype) + kKvBlockTokens;
  std::vector<WantedRow> rows;
  const std::vector<int32_t> prefix = RandomTokens(shared);
  for (int32_t r = 0; r < kRows; ++r) {
    WantedRow& row = rows.emplace_back();
    row.tokens = prefix;
    for (const int32_t token : RandomTokens(kNew)) row.tokens.push_back(token);
    row.begin = shared;
    row.blocks = Blocks(20, shared);
    row.blocks.push_back(40 + r);
    row.wanted = {shared + kNew - 1};
  }
  const std::vector<Logits> expected = Expected(rows);
  ComputePrefixes(*model_, {rows[0]});
  ForwardPass pass(model_->context(), {.max_tokens = kMaxWantedTokens});
  Fill(&pass, rows, true);
  const int64_t before = model_->kernels().num_attention_calls();
  ASSERT_NO_FATAL_FAILURE(ExpectSame(testing::RunPass(&pass, model_->vocab()), expected));
  const int64_t num_calls = model_->kernels().num_attention_calls() - before;
  // In the other layers, too, as many rows as fit share a tile.
  const int64_t together = kMaxQueryRows / (c.num_heads / c.num_kv_heads) / kNew;
  const int64_t num_tiles = together == 0 ? kRows : (kRows + together - 1) / together;
  // The last layer has fewer calls than rows; the number depends on the idle threads.
  EXPECT_LT(num_calls, c.num_kv_heads * (num_tiles * (c.num_layers - 1) + kRows));
}

std::string ParamName(const ::testing::TestParamInfo<OutputTokensTest::ParamType>& param) {
  const auto& [model, dtype, quantization, isa] = param.param;
  std::string name = std::string(model) + "_" + dtype + "_" + quantization + "_" + NameOf(isa);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, OutputTokensTest,
                         ::testing::Combine(::testing::Values("llama-linear", "qwen3-bf16",
                                                              "qwen3-moe", "qwen2-moe",
                                                              "gemma2-bf16", "gemma3-bf16",
                                                              "granite-bf16", "gpt-oss-bf16"),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::Values("none"),
                                            ::testing::ValuesIn(testing::VectorIsas())),
                         ParamName);

INSTANTIATE_TEST_SUITE_P(Int8, OutputTokensTest,
                         ::testing::Combine(::testing::Values("qwen3-bf16"),
                                            ::testing::Values("bf16"),
                                            ::testing::Values("int8", "int4"),
                                            ::testing::ValuesIn(testing::VectorIsas())),
                         ParamName);

// For a row of two tokens, the mean equals half the sum of the first and the last token's states.
// These states come from passes with no other output tokens. A row without outputs comes first. If
// all rows have outputs, the pass moves nothing and gives the same mean.
TEST(OutputTokensEncoder, PooledTokensHaveTheBitsOfTheMeansTokens) {
  for (const char* dtype : {"f32", "bf16"}) {
    const LoadedModel model(SKEIN_SOURCE_DIR "/tests/data/encoders/bert", {.dtype = dtype});
    const int32_t hidden = model.config().hidden_size;
    std::mt19937_64 random(5);
    std::vector<std::vector<int32_t>> tokens, blocks;
    for (const int32_t size : {30, 2, 9, 2}) {
      tokens.emplace_back(size);
      for (int32_t& token : tokens.back()) token = static_cast<int32_t>(random() % model.vocab());
      blocks.push_back(Blocks(static_cast<int32_t>(4 * blocks.size()), size));
    }
    for (const int32_t chunk : {0, 16}) {
      const auto embed = [&](Pooling pooling, const std::vector<int32_t>& rows) {
        ForwardContext context = model.context();
        context.pooling = pooling;
        ForwardPass pass(context, {.max_tokens = 64, .chunk_tokens = chunk});
        for (size_t r = 0; r < tokens.size(); ++r) {
          pass.batch().AddRow(tokens[r], 0, blocks[r], false);
        }
        pass.batch().embedded_rows = rows;
        pass.Begin();
        std::vector<Logits> states;
        while (pass.Run(nullptr) == ForwardStatus::kOutputs) {
          for (int32_t i = 0; i < pass.chunk().count; ++i) {
            states.emplace_back(pass.output(i), pass.output(i) + hidden);
          }
        }
        return states;
      };
      const std::vector<int32_t> some = {1, 3};
      const std::vector<Logits> first = embed(Pooling::kCls, some),
                                last = embed(Pooling::kLast, some),
                                mean = embed(Pooling::kMean, some),
                                all = embed(Pooling::kMean, {0, 1, 2, 3});
      ASSERT_EQ(first.size(), 2u);
      ASSERT_EQ(last.size(), 2u);
      ASSERT_EQ(mean.size(), 2u);
      ASSERT_EQ(all.size(), 4u);
      for (size_t r = 0; r < 2; ++r) {
        EXPECT_FALSE(SameBits(first[r], last[r]));
        Logits sum(hidden, 0.0f);
        for (int32_t d = 0; d < hidden; ++d) {
          sum[d] += first[r][d];
          sum[d] += last[r][d];
          sum[d] /= 2.0f;
        }
        EXPECT_TRUE(SameBits(mean[r], sum)) << dtype << " row " << r;
        EXPECT_TRUE(SameBits(mean[r], all[some[r]])) << dtype << " row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace skein
