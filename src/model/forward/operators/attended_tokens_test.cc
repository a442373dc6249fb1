// Rows of encoders in which tokens attend to the first ones alone (ForwardRow::num_attended).

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "testing/loaded_model.h"

namespace skein {
namespace {

using testing::LoadedModel;
using TokenStates = std::vector<std::vector<float>>;

// The states of all tokens of some sequences, which run as one batch.
TokenStates StatesOf(const LoadedModel& model, const std::vector<std::vector<int32_t>>& sequences,
                     const std::vector<int32_t>& num_attended) {
  ForwardPass pass(model.context(), {.max_tokens = 200, .max_logit_rows = 7});
  ForwardBatch& batch = pass.batch();
  std::vector<std::vector<int32_t>> blocks;
  int32_t block = 0;
  for (const std::vector<int32_t>& ids : sequences) {
    blocks.push_back(testing::Blocks(block, static_cast<int32_t>(ids.size())));
    block += static_cast<int32_t>(blocks.back().size());
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    batch.AddRow(sequences[i], 0, blocks[i], false);
    batch.rows.back().num_attended = num_attended[i];
  }
  for (int32_t token = 0; token < batch.num_tokens(); ++token) batch.state_tokens.push_back(token);
  TokenStates states;
  pass.Begin();
  while (pass.Run(nullptr) != ForwardStatus::kDone) {
    for (int32_t i = 0; i < pass.chunk().count; ++i) {
      states.emplace_back(pass.output(i), pass.output(i) + model.config().hidden_size);
    }
  }
  return states;
}

class AttendedTokensTest : public ::testing::TestWithParam<const char*> {};

// The attended tokens have the bits that they have alone. A token behind them sees them, and no
// other: not even itself.
TEST_P(AttendedTokensTest, OnlyTheFirstTokensAreSeen) {
  const std::string dir = std::string(SKEIN_SOURCE_DIR "/tests/data/encoders/") + GetParam();
  const std::vector<int32_t> text = {5, 9, 14, 3, 22, 8, 41, 17, 30, 12, 6};
  const auto count = static_cast<int32_t>(text.size());
  std::vector<int32_t> filled = text;
  filled.resize(40, 4);
  std::vector<int32_t> other = filled;
  other[35] = 60;
  for (const std::string dtype : {"f32", "bf16"}) {
    const LoadedModel model(dir, {.dtype = dtype, .threads = 2});
    constexpr int32_t kAll = std::numeric_limits<int32_t>::max();
    const TokenStates alone = StatesOf(model, {text}, {kAll});
    const TokenStates marked = StatesOf(model, {filled}, {count});
    ASSERT_EQ(marked.size(), filled.size());
    for (int32_t i = 0; i < count; ++i) EXPECT_EQ(marked[i], alone[i]) << i;
    const TokenStates changed = StatesOf(model, {other}, {count});
    for (int32_t i = 0; i < 40; ++i) EXPECT_EQ(marked[i] == changed[i], i != 35) << i;
    EXPECT_NE(StatesOf(model, {filled}, {kAll})[0], marked[0]);
    // The same bits beside other rows.
    const TokenStates all = StatesOf(model, {text, filled, other, filled}, {kAll, count, count, 3});
    EXPECT_EQ(TokenStates(all.begin() + count, all.begin() + count + 40), marked);
    EXPECT_EQ(TokenStates(all.begin() + count + 40, all.begin() + count + 80), changed);
  }
}

INSTANTIATE_TEST_SUITE_P(Encoders, AttendedTokensTest,
                         ::testing::Values("bert", "roberta", "modernbert", "gte", "distilbert",
                                           "deberta-v3", "mpnet"));

}  // namespace
}  // namespace skein
