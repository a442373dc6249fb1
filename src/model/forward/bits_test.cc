// The numeric contract. No bit depends on how a sequence is split into passes, on the batch around
// it, on the stops of a pass, on the number of threads, or on the instruction set within its class.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "testing/isas.h"
#include "testing/loaded_model.h"
#include "testing/shared.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;

constexpr int32_t kMaxBitsTokens = 768;
constexpr int32_t kBitsTokens =
    100;  // of the sequence that is compared: four blocks, two steps of keys

const char kDataDir[] = SKEIN_SOURCE_DIR "/tests/data/models/";

// One model in one type with one instruction set. The reference uses KV blocks [0, 8), the tests
// use the rest.
class ForwardBitsTest
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, const char*, Isa>> {
 protected:
  ForwardBitsTest() : random_(seed_) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    model_ = Load(1);
    pass_ = NewPass(*model_);
    tokens_ = RandomTokens(kBitsTokens);
    reference_ = testing::RunAlone(pass_.get(), tokens_, 0, kBitsTokens, Blocks(0, kBitsTokens),
                                   model_->vocab());
  }

  std::unique_ptr<LoadedModel> Load(int threads) const {
    const auto& [name, dtype, quantization, isa] = GetParam();
    return std::make_unique<LoadedModel>(std::string(kDataDir) + name,
                                         LoadedModel::Options{.dtype = dtype,
                                                              .quantization = quantization,
                                                              .isa = isa,
                                                              .threads = threads,
                                                              .num_blocks = 256});
  }
  static std::unique_ptr<ForwardPass> NewPass(const LoadedModel& model) {
    return std::make_unique<ForwardPass>(
        model.context(), ForwardLimits{.max_tokens = kMaxBitsTokens, .max_logit_rows = 24});
  }

  std::vector<int32_t> RandomTokens(int32_t n) {
    std::vector<int32_t> tokens;
    while (static_cast<int32_t>(tokens.size()) < n) {
      tokens.push_back(static_cast<int32_t>(random_() % model_->vocab()));
    }
    return tokens;
  }

  void ExpectReference(const std::vector<Logits>& logits, int32_t begin) {
    for (size_t i = 0; i < logits.size(); ++i) {
      ASSERT_TRUE(testing::SameBits(logits[i], reference_[begin + i])) << "position " << begin + i;
    }
  }

  void ExpectChunkedIsReference(int32_t chunk, int32_t begin, const std::vector<int32_t>& blocks) {
    for (int32_t i = begin; i < kBitsTokens; i += chunk) {
      const int32_t end = std::min(i + chunk, kBitsTokens);
      const auto logits = testing::RunAlone(pass_.get(), tokens_, i, end, blocks, model_->vocab());
      ASSERT_EQ(logits.size(), size_t(end - i));
      ExpectReference(logits, i);
    }
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<ForwardPass> pass_;
  std::vector<int32_t> tokens_;
  std::vector<Logits> reference_;  // after every token; computed in one pass, alone
};

TEST_P(ForwardBitsTest, LogitsAreFiniteAndDiffer) {
  // The compared values must be finite.
  for (const Logits& logits : reference_) {
    for (const float l : logits) ASSERT_TRUE(std::isfinite(l));
  }
  EXPECT_FALSE(testing::SameBits(reference_[3], reference_[4]));
}

TEST_P(ForwardBitsTest, ChunksOfAnySize) {
  for (const int32_t chunk : {1, 7, 32, 64}) {
    SCOPED_TRACE("chunk " + std::to_string(chunk));
    // The ids descend: the order of blocks must not matter.
    std::vector<int32_t> blocks = Blocks(20 + chunk, kBitsTokens);
    std::reverse(blocks.begin(), blocks.end());
    ExpectChunkedIsReference(chunk, 0, blocks);
  }
}

// For a model with states, the tests in which rows share blocks are in linear/states_test.cc.
TEST_P(ForwardBitsTest, CachedPrefix) {
  if (model_->config().has_linear_layers()) GTEST_SKIP() << "has states";
  for (const int32_t cached_blocks : {1, 2, 3}) {
    std::vector<int32_t> blocks = Blocks(100, kBitsTokens);
    const std::vector<int32_t> reference_blocks = Blocks(0, kBitsTokens);
    std::copy_n(reference_blocks.begin(), cached_blocks, blocks.begin());
    ExpectChunkedIsReference(kBitsTokens, cached_blocks * kKvBlockTokens, blocks);
  }
}

// The sequence in a batch with 31 others, in two chunks split at random. Prefills and decodes are
// mixed.
TEST_P(ForwardBitsTest, BatchOf32) {
  constexpr int32_t kRows = 32;
  const int32_t cut = 1 + static_cast<int32_t>(random_() % (kBitsTokens - 1));
  const std::vector<int32_t> own_blocks = Blocks(8, kBitsTokens);
  const int32_t bounds[] = {0, cut, kBitsTokens};
  std::vector<std::vector<int32_t>> tokens(kRows), blocks(kRows);
  for (int32_t r = 0; r < kRows; ++r) {
    tokens[r] = RandomTokens(2 + static_cast<int32_t>(random_() % 20));
    blocks[r] = Blocks(16 + r, static_cast<int32_t>(tokens[r].size()));
  }
  for (int step = 0; step < 2; ++step) {
    const auto place = static_cast<int32_t>(random_() % kRows);
    ForwardBatch& batch = pass_->batch();
    batch.Clear();
    int32_t first = 0;
    for (int32_t r = 0; r < kRows; ++r) {
      if (r == place) {
        const int32_t begin = bounds[step];
        first = batch.num_tokens();
        batch.AddRow(std::span(tokens_).subspan(begin, bounds[step + 1] - begin), begin, own_blocks,
                     false);
      } else {
        // The first step computes all tokens except the last; the second step decodes the last one.
        const auto split = static_cast<int32_t>(tokens[r].size()) - 1;
        const auto row =
            step == 0 ? std::span(tokens[r]).first(split) : std::span(tokens[r]).subspan(split);
        batch.AddRow(row, step == 0 ? 0 : split, blocks[r], false);
      }
    }
    ASSERT_LE(batch.num_tokens(), kMaxBitsTokens);
    for (int32_t i = bounds[step]; i < bounds[step + 1]; ++i) {
      batch.logit_tokens.push_back(first + i - bounds[step]);
    }
    const auto logits = testing::RunPass(pass_.get(), model_->vocab());
    ASSERT_EQ(logits.size(), size_t(bounds[step + 1] - bounds[step]));
    ExpectReference(logits, bounds[step]);
  }
}

// Decode rows at several positions of the sequence in one batch. Most rows share two blocks, too
// few for joint tiles in bf16 on AMX; rows of long_test.cc share more.
TEST_P(ForwardBitsTest, DecodeRowsWithBlocksInCommon) {
  if (model_->config().has_linear_layers()) GTEST_SKIP() << "has states";
  constexpr int32_t kRows = 24, kPrefix = 64;
  pass_->batch().Clear();
  const std::vector<int32_t> prefix = Blocks(8, kPrefix);
  pass_->batch().AddRow(std::span(tokens_).first(kPrefix), 0, prefix, false);
  testing::RunPass(pass_.get(), model_->vocab());
  std::vector<std::vector<int32_t>> blocks(kRows);
  std::vector<int32_t> positions(kRows);
  for (int32_t r = 0; r < kRows; ++r) {
    // Row r decodes at positions[r]; every fourth row shares no block.
    const int32_t shared = r % 4 == 0 ? 0 : kPrefix;
    positions[r] = kPrefix + static_cast<int32_t>(random_() % (kBitsTokens - kPrefix));
    blocks[r] = Blocks(16 + 4 * r, kBitsTokens);
    std::copy_n(prefix.begin(), shared / kKvBlockTokens, blocks[r].begin());
    if (positions[r] == shared) continue;
    pass_->batch().Clear();
    pass_->batch().AddRow(std::span(tokens_).subspan(shared, positions[r] - shared), shared,
                          blocks[r], false);
    testing::RunPass(pass_.get(), model_->vocab());
  }
  pass_->batch().Clear();
  for (int32_t r = 0; r < kRows; ++r) {
    pass_->batch().AddRow(std::span(tokens_).subspan(positions[r], 1), positions[r], blocks[r],
                          true);
  }
  const std::vector<Logits> logits = testing::RunPass(pass_.get(), model_->vocab());
  ASSERT_EQ(logits.size(), size_t{kRows});
  for (int32_t r = 0; r < kRows; ++r) {
    EXPECT_TRUE(testing::SameBits(logits[r], reference_[positions[r]])) << "row " << r;
  }
}

// The sequence as a child of a parent row, beside other children. The parent is computed in the
// same pass or in the one before. The prefix ends at every position within a block, and at some
// others.
TEST_P(ForwardBitsTest, ForestsOfOnePass) {
  std::vector<int32_t> cuts = {1, 63, 64, 65, kBitsTokens - 1};
  for (int32_t cut = kKvBlockTokens; cut < 2 * kKvBlockTokens; ++cut) cuts.push_back(cut);
  if (model_->config().has_linear_layers()) GTEST_SKIP() << "has states";
  for (const int32_t cut : cuts) {
    SCOPED_TRACE("cut " + std::to_string(cut));
    const bool parent_before = random_() % 2 == 0;
    const int32_t num_shared = cut / kKvBlockTokens;
    const std::vector<int32_t> parent_blocks = Blocks(20, cut);
    ForwardBatch& batch = pass_->batch();
    batch.Clear();
    batch.AddRow(std::span(tokens_).first(cut), 0, parent_blocks, false);
    if (parent_before) {
      testing::RunPass(pass_.get(), model_->vocab());
      batch.Clear();
    }
    // Child 1 is the sequence. The other children have different, shorter endings.
    std::vector<std::vector<int32_t>> tokens(3), blocks(3);
    for (int32_t child = 0; child < 3; ++child) {
      tokens[child] = child == 1 ? std::vector<int32_t>(tokens_.begin() + cut, tokens_.end())
                                 : RandomTokens(1 + static_cast<int32_t>(random_() % 40));
      blocks[child] = Blocks(40 + 20 * child, cut + static_cast<int32_t>(tokens[child].size()));
      std::copy_n(parent_blocks.begin(), num_shared, blocks[child].begin());
      if (child == 1) {
        for (size_t i = 0; i < tokens[child].size(); ++i) {
          batch.logit_tokens.push_back(batch.num_tokens() + static_cast<int32_t>(i));
        }
      }
      batch.AddRow(tokens[child], cut, blocks[child], false);
      if (cut % kKvBlockTokens == 0) continue;
      batch.rows.back().fork = {parent_blocks[num_shared], cut % kKvBlockTokens};
    }
    const auto logits = testing::RunPass(pass_.get(), model_->vocab());
    ASSERT_EQ(logits.size(), size_t(kBitsTokens - cut));
    ExpectReference(logits, cut);
  }
}

// Tickets of rows end inside a KV block, so two threads store into the block at the same time.
TEST_P(ForwardBitsTest, RowsCutInsideABlock) {
  const auto model = Load(2);
  const auto pass = NewPass(*model);
  // Tokens 77 to 176 of the sequence cross the ends of chunks of 96 and of 160 rows.
  const std::vector<int32_t> before = RandomTokens(77), after = RandomTokens(123);
  for (int32_t run = 0; run < 5; ++run) {
    const int32_t first = 10 + 12 * run;
    const std::vector<int32_t> blocks_before = Blocks(first, 77),
                               blocks = Blocks(first + 3, kBitsTokens),
                               blocks_after = Blocks(first + 7, 123);
    ForwardBatch& batch = pass->batch();
    batch.Clear();
    batch.AddRow(before, 0, blocks_before, false);
    batch.AddRow(tokens_, 0, blocks, false);
    batch.AddRow(after, 0, blocks_after, false);
    for (int32_t i = 0; i < kBitsTokens; ++i) batch.logit_tokens.push_back(77 + i);
    const auto logits = testing::RunPass(pass.get(), model->vocab());
    ASSERT_EQ(logits.size(), size_t{kBitsTokens});
    ExpectReference(logits, 0);
  }
}

TEST_P(ForwardBitsTest, AnyNumberOfThreads) {
  for (const int threads : {2, 5}) {
    const auto model = Load(threads);
    const auto pass = NewPass(*model);
    ExpectReference(testing::RunAlone(pass.get(), tokens_, 0, kBitsTokens, Blocks(0, kBitsTokens),
                                      model->vocab()),
                    0);
  }
}

TEST_P(ForwardBitsTest, EveryInstructionSetOfTheClass) {
  const auto& [name, dtype, quantization, isa] = GetParam();
  // In bf16, the matrix unit and AVX512-BF16 each form a class of their own.
  const DType type = std::string_view(dtype) == "bf16" ? DType::kBf16 : DType::kF32;
  const Isa other = NumericClassOf(isa, type) == NumericClass::kFma ? Isa::kScalar : isa;
  const LoadedModel model(std::string(kDataDir) + name,
                          {.dtype = dtype, .quantization = quantization, .isa = other});
  const auto pass = NewPass(model);
  ExpectReference(
      testing::RunAlone(pass.get(), tokens_, 0, kBitsTokens, Blocks(0, kBitsTokens), model.vocab()),
      0);
}

// Puts tokens [0, length) of the sequence into the batch, with logits after each token.
void FillBatch(ForwardPass* pass, const std::vector<int32_t>& tokens, int32_t length,
               const std::vector<int32_t>& blocks) {
  pass->batch().Clear();
  pass->batch().AddRow(std::span(tokens).first(length), 0, blocks, false);
  for (int32_t i = 0; i < length; ++i) pass->batch().logit_tokens.push_back(i);
}

void TakeLogits(const ForwardPass& pass, int32_t vocab, std::vector<Logits>* all) {
  for (int32_t i = 0; i < pass.num_logit_rows(); ++i) {
    all->emplace_back(pass.logits(i), pass.logits(i) + vocab);
  }
}

TEST_P(ForwardBitsTest, OneRunThatStopsAtEveryTicket) {
  const std::vector<int32_t> blocks = Blocks(30, kBitsTokens);
  FillBatch(pass_.get(), tokens_, kBitsTokens, blocks);
  pass_->Begin();
  std::atomic<bool>& stop = model_->kernels().stop();
  std::vector<Logits> all;
  int num_stops = 0;
  ForwardStatus status = ForwardStatus::kStopped;
  while (all.size() < size_t{kBitsTokens}) {
    // If the pass is stopped before the next ticket, it makes no progress. If it is stopped after
    // the ticket's first kernel call, it advances by one ticket.
    const CursorPosition before = pass_->position();
    stop = true;
    ASSERT_EQ(pass_->Run(&stop), ForwardStatus::kStopped);
    if (status == ForwardStatus::kStopped) {
      ASSERT_EQ(pass_->position(), before);
    }
    stop = false;
    model_->kernels().StopAfter(0);
    status = pass_->Run(&stop);
    ASSERT_NE(status, ForwardStatus::kDone);
    if (status == ForwardStatus::kLogits) TakeLogits(*pass_, model_->vocab(), &all);
    num_stops += status == ForwardStatus::kStopped;
  }
  EXPECT_EQ(pass_->Run(nullptr), ForwardStatus::kDone);
  EXPECT_GT(num_stops, 9 * model_->config().num_layers);
  ExpectReference(all, 0);
}

TEST_P(ForwardBitsTest, OneStopAtEachKernelCallWithAnotherPassBetween) {
  constexpr int32_t kFew = 3;
  const std::vector<int32_t> blocks = Blocks(40, kFew);
  const std::vector<int32_t> other_blocks = Blocks(60, kFew);
  const std::vector<int32_t> other_tokens = RandomTokens(kFew);
  const auto other = NewPass(*model_);
  std::atomic<bool>& stop = model_->kernels().stop();
  const int64_t calls_before = model_->kernels().num_calls();
  FillBatch(pass_.get(), tokens_, kFew, blocks);
  testing::RunPass(pass_.get(), model_->vocab());
  const int64_t num_calls = model_->kernels().num_calls() - calls_before;
  // The last call belongs to the last ticket: a pass that stops there has ended.
  for (int64_t k = 0; k < num_calls - 1; ++k) {
    FillBatch(pass_.get(), tokens_, kFew, blocks);
    pass_->Begin();
    stop = false;
    model_->kernels().StopAfter(k);
    std::vector<Logits> all;
    int num_stops = 0;
    for (ForwardStatus status; (status = pass_->Run(&stop)) != ForwardStatus::kDone;) {
      if (status == ForwardStatus::kLogits) {
        TakeLogits(*pass_, model_->vocab(), &all);
        continue;
      }
      ++num_stops;
      stop = false;
      testing::RunAlone(other.get(), other_tokens, 0, kFew, other_blocks, model_->vocab());
    }
    ASSERT_EQ(num_stops, 1) << "call " << k << " of " << num_calls;
    ASSERT_EQ(all.size(), size_t{kFew});
    ExpectReference(all, 0);
  }
}

TEST_P(ForwardBitsTest, ATeamThatStopsAtRandom) {
  model_->context().team->StopAtRandom(seed_);
  const std::atomic<bool> never = false;
  const std::vector<int32_t> blocks = Blocks(30, kBitsTokens);
  int num_stops = 0;
  // Stops are rare in a pass with few lists. So passes run until there have been enough stops, at
  // most 100 times.
  for (int run = 0; run < 5 || (num_stops <= 5 && run < 100); ++run) {
    FillBatch(pass_.get(), tokens_, kBitsTokens, blocks);
    pass_->Begin();
    std::vector<Logits> all;
    for (ForwardStatus status; (status = pass_->Run(&never)) != ForwardStatus::kDone;) {
      if (status == ForwardStatus::kLogits) TakeLogits(*pass_, model_->vocab(), &all);
      num_stops += status == ForwardStatus::kStopped;
    }
    ASSERT_EQ(all.size(), size_t{kBitsTokens});
    ExpectReference(all, 0);
  }
  EXPECT_GT(num_stops, 5);
}

using BitsParam = ForwardBitsTest::ParamType;

std::string BitsName(const ::testing::TestParamInfo<BitsParam>& param) {
  const auto& [model, dtype, quantization, isa] = param.param;
  std::string name = std::string(model) + "_" + dtype + "_" + quantization + "_" + NameOf(isa);
  for (const char c : {'-', '.'}) std::replace(name.begin(), name.end(), c, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, ForwardBitsTest,
    ::testing::Combine(::testing::Values("llama-linear", "qwen2-tied", "qwen3-bf16", "qwen3-moe"),
                       ::testing::Values("f32", "bf16"), ::testing::Values("none"),
                       ::testing::ValuesIn(IsasHere())),
    BitsName);

// Models with windows, norms in other positions, scales, partial rotation, and states. The scalar
// code takes long, and every test is compared with it in any case.
INSTANTIATE_TEST_SUITE_P(
    Architectures, ForwardBitsTest,
    ::testing::Combine(::testing::Values("mistral-window", "qwen2-window", "gemma2-bf16",
                                         "gemma3-bf16", "phi3", "phi3-bf16", "olmo2-bf16",
                                         "granite-bf16", "smollm3-bf16", "qwen3.5", "qwen3.5-bf16",
                                         "qwen3.5-moe", "qwen2-moe", "olmoe", "mixtral-bf16",
                                         "qwen3-next", "gpt-oss", "gpt-oss-bf16"),
                       ::testing::Values("f32", "bf16"), ::testing::Values("none"),
                       ::testing::ValuesIn(testing::VectorIsas())),
    BitsName);

// Products with int8 or block weights have the same bits on every instruction set.
INSTANTIATE_TEST_SUITE_P(Int8, ForwardBitsTest,
                         ::testing::Combine(::testing::Values("qwen2-tied", "qwen3-bf16",
                                                              "qwen3.5-bf16", "qwen3-moe-plain",
                                                              "qwen3.5-moe-bf16"),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::Values("int8", "int4"),
                                            ::testing::ValuesIn(testing::VectorIsas())),
                         BitsName);

// Experts in the blocks of the file.
INSTANTIATE_TEST_SUITE_P(FileBlocks, ForwardBitsTest,
                         ::testing::Combine(::testing::Values("gpt-oss-mxfp4"),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::Values("auto"),
                                            ::testing::ValuesIn(testing::VectorIsas())),
                         BitsName);

// The scalar code of these products does not depend on the model.
INSTANTIATE_TEST_SUITE_P(ScalarInt8, ForwardBitsTest,
                         ::testing::Combine(::testing::Values("qwen3-bf16"),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::Values("int8", "int4"),
                                            ::testing::Values(Isa::kScalar)),
                         BitsName);

}  // namespace
}  // namespace skein
