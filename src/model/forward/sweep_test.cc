// The numeric contract over 600 keys, which span more than two attention steps of the matrix unit.
// One sequence runs in chunks of any size, after cached prefixes of every number of blocks, in
// decode batches of many sizes, and resumed at every ticket; on one thread and on two. The bits are
// those of the sequence alone: one pass, one thread, nothing cached.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/threads/thread_team.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "model/config/rope.h"
#include "model/forward/pass.h"
#include "model/forward/rope_angles.h"
#include "testing/isas.h"
#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;

constexpr int32_t kSweepTokens = 600;
constexpr int32_t kLengthBlocks = (kSweepTokens + kKvBlockTokens - 1) / kKvBlockTokens;
constexpr int32_t kMaxRows = 64;  // of a batch
constexpr int32_t kStrangerTokens = 64;
constexpr int32_t kStrangerBlock = (1 + kMaxRows) * kLengthBlocks;  // behind the blocks of all rows
constexpr int32_t kNumBlocks = kStrangerBlock + kStrangerTokens / kKvBlockTokens;
static_assert(kSweepTokens > 2 * kKeysPerAmxStep);

struct SweepCase {
  const char* dtype;
  const char* quantization;
  Isa isa;
  int threads;
};

// The test model, with angles for more positions than its config allows.
class SweepModel {
 public:
  SweepModel(const SweepCase& sweep, int threads, int32_t num_blocks)
      : model_(SKEIN_SOURCE_DIR "/tests/data/models/qwen3-bf16",
               {.dtype = sweep.dtype,
                .quantization = sweep.quantization,
                .isa = sweep.isa,
                .threads = threads,
                .num_blocks = num_blocks}),
        team_(1),
        angles_(MakeRopeTable(config().rope, config().head_dim), kSweepTokens, team_) {}

  std::unique_ptr<ForwardPass> NewPass() const {
    ForwardContext context = model_.context();
    context.rope = &angles_;
    return std::make_unique<ForwardPass>(
        context, ForwardLimits{.max_tokens = kSweepTokens, .max_logit_rows = 64});
  }
  const ModelConfig& config() const { return model_.config(); }
  testing::StoppingKernels& kernels() { return model_.kernels(); }

 private:
  LoadedModel model_;
  ThreadTeam team_;
  const RopeAngles angles_;
};

class ForwardSweepTest : public ::testing::TestWithParam<SweepCase> {
 protected:
  void SetUp() override {
    if (!MakeKernels(GetParam().isa).ok()) GTEST_SKIP() << "not on this machine";
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    const SweepModel alone(GetParam(), 1, kLengthBlocks);
    vocab_ = alone.config().vocab_size;
    tokens_ = RandomTokens(kSweepTokens);
    reference_ = testing::RunAlone(alone.NewPass().get(), tokens_, 0, kSweepTokens,
                                   Blocks(0, kSweepTokens), vocab_);
    ASSERT_EQ(reference_.size(), size_t{kSweepTokens});
    // The compared values must be finite and different.
    ASSERT_TRUE(std::all_of(reference_.back().begin(), reference_.back().end(),
                            [](float l) { return std::isfinite(l); }));
    ASSERT_FALSE(testing::SameBits(reference_[kSweepTokens - 2], reference_[kSweepTokens - 1]));
    model_ = std::make_unique<SweepModel>(GetParam(), GetParam().threads, kNumBlocks);
    pass_ = model_->NewPass();
  }

  std::vector<int32_t> RandomTokens(int32_t n) {
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % vocab_);
    return tokens;
  }

  // Compares `logits` with the reference's logits of `count` positions, from `begin` on.
  void ExpectReference(const std::vector<Logits>& logits, int32_t begin, int32_t count) {
    ASSERT_EQ(logits.size(), size_t(count));
    for (int32_t i = 0; i < count; ++i) {
      ASSERT_TRUE(testing::SameBits(logits[i], reference_[begin + i])) << "position " << begin + i;
    }
  }

  // Computes positions [begin, end), which follow those in `blocks`.
  void RunAndCompare(int32_t begin, int32_t end, const std::vector<int32_t>& blocks) {
    ExpectReference(testing::RunAlone(pass_.get(), tokens_, begin, end, blocks, vocab_), begin,
                    end - begin);
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  int32_t vocab_ = 0;
  std::vector<int32_t> tokens_;
  std::vector<Logits> reference_;  // after every token; in one pass, alone, on one thread
  std::unique_ptr<SweepModel> model_;
  std::unique_ptr<ForwardPass> pass_;
};

TEST_P(ForwardSweepTest, ChunksOfAnySize) {
  int32_t first_block = 0;
  for (const int32_t chunk : {kSweepTokens, 512, 64, 7, 1}) {
    SCOPED_TRACE("chunk " + std::to_string(chunk));
    std::vector<int32_t> blocks = Blocks(first_block, kSweepTokens);
    std::reverse(blocks.begin(), blocks.end());
    first_block += kLengthBlocks;
    for (int32_t begin = 0; begin < kSweepTokens; begin += chunk) {
      ASSERT_NO_FATAL_FAILURE(RunAndCompare(begin, std::min(begin + chunk, kSweepTokens), blocks));
    }
  }
}

TEST_P(ForwardSweepTest, CachedPrefixOfEveryNumberOfBlocks) {
  const std::vector<int32_t> cached = Blocks(0, kSweepTokens);
  ASSERT_NO_FATAL_FAILURE(RunAndCompare(0, kSweepTokens, cached));
  for (int32_t num_cached = 1; num_cached < kLengthBlocks; ++num_cached) {
    SCOPED_TRACE(std::to_string(num_cached) + " blocks");
    std::vector<int32_t> blocks = Blocks(num_cached * kLengthBlocks, kSweepTokens);
    std::copy_n(cached.begin(), num_cached, blocks.begin());
    ASSERT_NO_FATAL_FAILURE(RunAndCompare(num_cached * kKvBlockTokens, kSweepTokens, blocks));
  }
}

// Rows at many positions of the sequence, some with shared blocks, decode one token each. The size
// and order of their batches change from step to step. Another sequence's prompt runs in the same
// batch.
TEST_P(ForwardSweepTest, DecodeBatchesOfManySizes) {
  struct Row {
    int32_t position;  // position of the next token
    std::vector<int32_t> blocks;
  };
  std::vector<int32_t> batch_sizes = {2, 3, 4, 8, 16, 17, 31, 32, 33, 48, kMaxRows};
  const auto num_steps = static_cast<int32_t>(batch_sizes.size());
  const std::vector<int32_t> common = Blocks(0, kSweepTokens);
  ASSERT_NO_FATAL_FAILURE(RunAndCompare(0, kSweepTokens, common));
  std::vector<Row> rows(kMaxRows);
  for (int32_t r = 0; r < kMaxRows; ++r) {
    // The blocks in common with other rows: none, one attention step, two steps, or all full
    // blocks.
    const int32_t position =
        kKvBlockTokens +
        static_cast<int32_t>(random_() % (kSweepTokens - kKvBlockTokens - num_steps + 1));
    const int32_t whole = position / kKvBlockTokens * kKvBlockTokens;
    const int32_t shared = std::min(r % 4 == 3 ? whole : r % 4 * kKeysPerAmxStep, whole);
    rows[r] = {position, Blocks((1 + r) * kLengthBlocks, kSweepTokens)};
    std::copy_n(common.begin(), shared / kKvBlockTokens, rows[r].blocks.begin());
    if (shared == position) continue;
    ASSERT_NO_FATAL_FAILURE(RunAndCompare(shared, position, rows[r].blocks));
  }
  std::shuffle(batch_sizes.begin(), batch_sizes.end(), random_);
  const std::vector<int32_t> stranger_blocks = Blocks(kStrangerBlock, kStrangerTokens);
  for (const int32_t size : batch_sizes) {
    SCOPED_TRACE("batch of " + std::to_string(size));
    std::shuffle(rows.begin(), rows.end(), random_);
    const auto place = static_cast<int32_t>(random_() % size);
    ForwardBatch& batch = pass_->batch();
    batch.Clear();
    for (int32_t r = 0; r < size; ++r) {
      if (r == place) {
        batch.AddRow(RandomTokens(1 + static_cast<int32_t>(random_() % kStrangerTokens)), 0,
                     stranger_blocks, false);
      }
      batch.AddRow(std::span(tokens_).subspan(rows[r].position, 1), rows[r].position,
                   rows[r].blocks, true);
    }
    const std::vector<Logits> logits = testing::RunPass(pass_.get(), vocab_);
    ASSERT_EQ(logits.size(), size_t(size));
    for (int32_t r = 0; r < size; ++r) {
      ASSERT_TRUE(testing::SameBits(logits[r], reference_[rows[r].position]))
          << "row " << r << " at position " << rows[r].position;
      ++rows[r].position;
    }
  }
}

// Stops after every ticket that calls a kernel; with two threads, after both have ended their
// tickets. After each stop, another sequence's pass runs.
TEST_P(ForwardSweepTest, ResumedAtEveryTicket) {
  constexpr int32_t kChunk = 200, kFew = 3;
  const std::vector<int32_t> blocks = Blocks(0, kSweepTokens);
  const std::vector<int32_t> other_blocks = Blocks(kLengthBlocks, kFew);
  const std::vector<int32_t> other_tokens = RandomTokens(kFew);
  const std::unique_ptr<ForwardPass> other = model_->NewPass();
  std::atomic<bool>& stop = model_->kernels().stop();
  int32_t num_stops = 0;
  for (int32_t begin = 0; begin < kSweepTokens; begin += kChunk) {
    ForwardBatch& batch = pass_->batch();
    batch.Clear();
    batch.AddRow(std::span(tokens_).subspan(begin, kChunk), begin, blocks, false);
    for (int32_t i = 0; i < kChunk; ++i) batch.logit_tokens.push_back(i);
    pass_->Begin();
    std::vector<Logits> all;
    for (;;) {
      stop = false;
      model_->kernels().StopAfter(0);
      const ForwardStatus status = pass_->Run(&stop);
      if (status == ForwardStatus::kDone) break;
      if (status == ForwardStatus::kLogits) {
        for (int32_t i = 0; i < pass_->num_logit_rows(); ++i) {
          all.emplace_back(pass_->logits(i), pass_->logits(i) + vocab_);
        }
        continue;
      }
      ASSERT_EQ(status, ForwardStatus::kStopped);
      ++num_stops;
      testing::RunAlone(other.get(), other_tokens, 0, kFew, other_blocks, vocab_);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectReference(all, begin, kChunk));
  }
  // There is at least one stop after each of the seven operators of a layer that call kernels.
  EXPECT_GE(num_stops, kSweepTokens / kChunk * 7 * model_->config().num_layers);
}

INSTANTIATE_TEST_SUITE_P(
    Sets, ForwardSweepTest,
    ::testing::Values(
        SweepCase{"bf16", "none", Isa::kAmx, 1}, SweepCase{"bf16", "none", Isa::kAmx, 2},
        SweepCase{"bf16", "int8", Isa::kAmx, 2}, SweepCase{"bf16", "none", Isa::kAvx512, 1},
        SweepCase{"bf16", "none", Isa::kAvx512, 2}, SweepCase{"bf16", "int8", Isa::kAvx512, 2},
        SweepCase{"bf16", "none", Isa::kAvx512Bf16, 1},
        SweepCase{"bf16", "none", Isa::kAvx512Bf16, 2},
        SweepCase{"bf16", "none", Isa::kAvx512Bf16Fma, 2}, SweepCase{"f32", "none", Isa::kAvx2, 1},
        SweepCase{"f32", "none", Isa::kAvx2, 2}, SweepCase{"bf16", "none", Isa::kAvx2, 2},
        SweepCase{"bf16", "int8", Isa::kAvx2, 2}, SweepCase{"bf16", "int4", Isa::kAvx512, 2},
        SweepCase{"bf16", "int4", Isa::kAvx2, 2}, SweepCase{"bf16", "int8", Isa::kAvxVnni, 2},
        SweepCase{"bf16", "int4", Isa::kAvxVnni, 2}),
    [](const auto& test) {
      return std::string(test.param.dtype) + "_" + test.param.quantization + "_" +
             testing::TestNameOf(test.param.isa) + "_" + std::to_string(test.param.threads) +
             "_threads";
    });

}  // namespace
}  // namespace skein
