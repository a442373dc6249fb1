// The states of linear layers: rows that start from snapshots or from the end of another row, rows
// whose state is not kept, and passes by chunk. The bits are always those of the sequence in one
// pass.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::Blocks;
using testing::LoadedModel;
using testing::Logits;

constexpr int32_t kStatesLength = 100;
constexpr int32_t kStatesTokens = 512;  // of a pass, at most

class StatesTest : public ::testing::TestWithParam<std::tuple<const char*, const char*, Isa>> {
 protected:
  StatesTest() {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
    const auto& [name, dtype, isa] = GetParam();
    model_ = std::make_unique<LoadedModel>(
        std::string(SKEIN_SOURCE_DIR "/tests/data/models/") + name,
        LoadedModel::Options{.dtype = dtype, .isa = isa, .threads = 2});
    tokens_ = RandomTokens(kStatesLength);
    ForwardPass pass(model_->context(), {.max_tokens = kStatesTokens});
    reference_ = testing::RunAlone(&pass, tokens_, 0, kStatesLength, Blocks(0, kStatesLength),
                                   model_->vocab());
  }

  std::vector<int32_t> RandomTokens(int32_t n) {
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % model_->vocab());
    return tokens;
  }
  // Adds tokens [begin, end) of the sequence to the batch, with logits after each token.
  void Add(ForwardBatch* batch, int32_t begin, int32_t end, const std::vector<int32_t>& blocks,
           const ForwardState& state) {
    for (int32_t i = begin; i < end; ++i) {
      batch->logit_tokens.push_back(batch->num_tokens() + i - begin);
    }
    batch->AddRow(std::span(tokens_).subspan(begin, end - begin), begin, blocks, false);
    batch->rows.back().state = state;
  }
  void ExpectReference(const std::vector<Logits>& logits, int32_t begin) {
    ASSERT_EQ(std::ssize(logits), kStatesLength - begin);
    for (size_t i = 0; i < logits.size(); ++i) {
      ASSERT_TRUE(testing::SameBits(logits[i], reference_[begin + i])) << "position " << begin + i;
    }
  }

  const uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  std::unique_ptr<LoadedModel> model_;
  std::vector<int32_t> tokens_;
  std::vector<Logits> reference_;
};

// A snapshot is the state after the shorter sequence, whatever tokens followed.
TEST_P(StatesTest, RowsStartFromSnapshots) {
  for (const int32_t chunk : {0, 7, 48}) {
    SCOPED_TRACE("chunk " + std::to_string(chunk));
    ForwardPass pass(model_->context(), {.max_tokens = kStatesTokens, .chunk_tokens = chunk});
    const std::vector<int32_t> blocks = Blocks(10, kStatesLength);
    ForwardBatch& batch = pass.batch();
    batch.Clear();
    Add(&batch, 0, 90, blocks, {.to = 1, .snapshots = {{{2, 32}, {3, 64}}}});
    testing::RunPass(&pass, model_->vocab());
    for (const auto& [slot, begin] : {std::pair(2, 32), std::pair(3, 64), std::pair(1, 90)}) {
      SCOPED_TRACE("begin " + std::to_string(begin));
      // The row uses new blocks behind the full ones. The state stays for the next run.
      for (int run = 0; run < 2; ++run) {
        std::vector<int32_t> own = blocks;
        if (begin < 90) std::iota(own.begin() + begin / kKvBlockTokens, own.end(), 20);
        batch.Clear();
        Add(&batch, begin, kStatesLength, own, {.from = slot, .to = 4});
        ExpectReference(testing::RunPass(&pass, model_->vocab()), begin);
      }
    }
  }
}

// Children start from the end of their parent, in the same pass or in the next one.
TEST_P(StatesTest, Forests) {
  for (const int32_t cut : {1, 2, 31, 32, 33, 63, 64, 99}) {
    SCOPED_TRACE("cut " + std::to_string(cut));
    const bool parent_before = random_() % 2 == 0;
    const int32_t chunk = random_() % 2 == 0 ? 0 : 16;
    ForwardPass pass(model_->context(), {.max_tokens = kStatesTokens, .chunk_tokens = chunk});
    const int32_t num_shared = cut / kKvBlockTokens;
    const std::vector<int32_t> parent_blocks = Blocks(10, cut);
    ForwardBatch& batch = pass.batch();
    batch.Clear();
    batch.AddRow(std::span(tokens_).first(cut), 0, parent_blocks, false);
    batch.rows.back().state = {.to = 1};
    if (parent_before) {
      testing::RunPass(&pass, model_->vocab());
      batch.Clear();
    }
    const std::vector<int32_t> others = RandomTokens(20);
    std::vector<std::vector<int32_t>> blocks(3);
    for (int32_t child = 0; child < 3; ++child) {
      blocks[child] = Blocks(20 + 8 * child, child == 1 ? kStatesLength : cut + 20);
      std::copy_n(parent_blocks.begin(), num_shared, blocks[child].begin());
      // The last child's state is not kept.
      const ForwardState state = {.from = 1, .to = child == 2 ? ForwardState::kNone : 2 + child};
      if (child == 1) {
        Add(&batch, cut, kStatesLength, blocks[child], state);
      } else {
        batch.AddRow(others, cut, blocks[child], false);
        batch.rows.back().state = state;
      }
      if (cut % kKvBlockTokens != 0) {
        batch.rows.back().fork = {parent_blocks[num_shared], cut % kKvBlockTokens};
      }
    }
    ExpectReference(testing::RunPass(&pass, model_->vocab()), cut);
  }
}

// Hybrid prefilling keeps neither keys and values nor a state.
TEST_P(StatesTest, NothingIsKept) {
  for (const int32_t chunk : {1, 16, 48, 96}) {
    for (const ChunkOutputs outputs : testing::kAllOutputs) {
      SCOPED_TRACE("chunk " + std::to_string(chunk));
      ForwardPass pass(model_->context(), {.max_tokens = kStatesTokens,
                                           .chunk_tokens = chunk,
                                           .max_own_blocks = 16,
                                           .chunk_outputs = outputs});
      ForwardBatch& batch = pass.batch();
      batch.Clear();
      const std::vector<int32_t> before = RandomTokens(21), after = RandomTokens(30);
      batch.AddRow(before, 0, {}, false);
      Add(&batch, 0, kStatesLength, {}, {});
      batch.AddRow(after, 0, {}, false);
      ExpectReference(testing::RunPass(&pass, model_->vocab()), 0);
    }
  }
}

// The decodes of several samples start from the same state; each keeps its own state afterwards.
TEST_P(StatesTest, SamplesPart) {
  ForwardPass pass(model_->context(), {.max_tokens = kStatesTokens});
  constexpr int32_t kPrompt = 64;
  const std::vector<int32_t> prompt_blocks = Blocks(10, kPrompt);
  ForwardBatch& batch = pass.batch();
  batch.Clear();
  batch.AddRow(std::span(tokens_).first(kPrompt), 0, prompt_blocks, false);
  batch.rows.back().state = {.to = 1};
  testing::RunPass(&pass, model_->vocab());
  std::vector<std::vector<int32_t>> blocks(3);
  for (int32_t s = 0; s < 3; ++s) {
    blocks[s] = Blocks(20 + 8 * s, kStatesLength);
    std::copy_n(prompt_blocks.begin(), 2, blocks[s].begin());
  }
  for (int32_t position = kPrompt; position < kStatesLength; ++position) {
    batch.Clear();
    const std::vector<int32_t> others = RandomTokens(2);
    for (int32_t s = 0; s < 3; ++s) {
      const int32_t slot = 2 + s;
      const ForwardState state = {.from = position == kPrompt ? 1 : slot, .to = slot};
      if (s == 1) {
        Add(&batch, position, position + 1, blocks[s], state);
      } else {
        batch.AddRow(std::span(others).subspan(s / 2, 1), position, blocks[s], false);
        batch.rows.back().state = state;
      }
    }
    const auto logits = testing::RunPass(&pass, model_->vocab());
    ASSERT_EQ(logits.size(), 1u);
    ASSERT_TRUE(testing::SameBits(logits[0], reference_[position])) << position;
  }
}

std::string StatesName(const ::testing::TestParamInfo<StatesTest::ParamType>& param) {
  const auto& [model, dtype, isa] = param.param;
  std::string name = std::string(model) + "_" + dtype + "_" + NameOf(isa);
  for (const char c : {'-', '.'}) std::replace(name.begin(), name.end(), c, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, StatesTest,
                         ::testing::Combine(::testing::Values("qwen3.5", "qwen3.5-bf16",
                                                              "qwen3.5-moe", "qwen3-next"),
                                            ::testing::Values("f32", "bf16"),
                                            ::testing::ValuesIn(testing::VectorIsas())),
                         StatesName);

}  // namespace
}  // namespace skein
