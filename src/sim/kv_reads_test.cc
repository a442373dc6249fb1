#include "sim/kv_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "sim/step_cost.h"

namespace skein {
namespace {

using ::testing::UnorderedElementsAre;
using Shared = KvReads::Run;

const TokenId kToken = 1;

// Rows with one token behind `begin` other tokens, in these blocks.
struct Rows {
  std::vector<std::vector<BlockId>> tables;
  std::vector<PlanRow> rows;

  void Add(std::vector<BlockId> table, int32_t begin) {
    tables.push_back(std::move(table));
    rows.push_back({.begin = begin, .tokens = std::span(&kToken, 1)});
    for (size_t i = 0; i < rows.size(); ++i) rows[i].block_table = tables[i];
  }
};

TEST(KvReads, NoRowsReadNothing) {
  const KvReads reads = CountKvReads({});
  EXPECT_EQ(reads.asked, 0);
  EXPECT_EQ(reads.unique, 0);
  EXPECT_TRUE(reads.runs.empty());
}

TEST(KvReads, PrefixesAreSharedAtEveryDepth) {
  Rows rows;
  rows.Add({1, 2, 5}, 70);
  rows.Add({1, 2, 3, 7}, 100);
  rows.Add({9}, 10);
  rows.Add({1, 2, 3, 6}, 99);
  const KvReads reads = CountKvReads(rows.rows);
  EXPECT_EQ(reads.num_rows, 4);
  EXPECT_EQ(reads.asked, 71 + 101 + 11 + 100);
  EXPECT_THAT(reads.runs, UnorderedElementsAre(Shared{1, 11}, Shared{3, 64}, Shared{1, 7},
                                               Shared{2, 32}, Shared{1, 5}, Shared{1, 4}));
}

// Compares with a table of all (block, slot) pairs.
TEST(KvReads, CountsWhatATableCounts) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<std::vector<BlockId>> known = {{}};
    BlockId next = 0;
    Rows rows;
    for (int i = 0; i < 12; ++i) {
      std::vector<BlockId> table = known[random.Between(0, std::ssize(known) - 1)];
      table.resize(random.Between(0, std::ssize(table)));
      for (int64_t more = random.Between(1, 3); more > 0; --more) table.push_back(next++);
      // The last block may be full, but a block is shared with other rows only if it is full.
      const auto full = static_cast<int32_t>(table.size()) * kBlockTokens;
      rows.Add(table, full - 1 - static_cast<int32_t>(random.Between(0, kBlockTokens - 1)));
      table.pop_back();
      known.push_back(table);
    }
    std::map<std::pair<BlockId, int32_t>, int32_t> readers;
    for (const PlanRow& row : rows.rows) {
      for (int32_t i = 0; i <= row.begin; ++i) {
        ++readers[{row.block_table[i / kBlockTokens], i % kBlockTokens}];
      }
    }
    std::map<int32_t, int64_t> expected, counted;
    for (const auto& [slot, count] : readers) ++expected[count];
    const KvReads reads = CountKvReads(rows.rows);
    for (const Shared& run : reads.runs) counted[run.rows] += run.tokens;
    EXPECT_EQ(counted, expected);
    EXPECT_EQ(reads.unique, std::ssize(readers));
    int64_t asked = 0;
    for (const auto& [count, tokens] : expected) asked += count * tokens;
    EXPECT_EQ(reads.asked, asked);
  }
}

// A decoder in which only attention takes time, at 1 GB/s, with a cache of 1 MB.
StepCost Cost(KvReading reading) {
  DeviceDescription device = ParseDevice(R"({"name": "test", "tflops": {"bf16": 100},
      "bandwidth_gbps": 1, "memory_gb": 20, "cache_mb": 1, "matmul_efficiency": [[1, 1]],
      "attention_efficiency": [[1, 1]]})")
                                 .value();
  SimModelShape shape;
  shape.num_layers = 1;
  shape.head_dim = 128;
  shape.q_width = 256;
  shape.kv_width = 256;
  return StepCost::Make(device, shape, {}, reading).value();
}

double StepUs(const StepCost& cost, int num_rows, int num_blocks, bool shared) {
  Rows rows;
  BlockId next = 0;
  for (int i = 0; i < num_rows; ++i) {
    if (shared) next = 0;
    std::vector<BlockId> table;
    for (int b = 0; b < num_blocks; ++b) table.push_back(next++);
    rows.Add(table, num_blocks * kBlockTokens - 1);
  }
  return cost.StepUs(DecodePlan{.rows = rows.rows});
}

TEST(KvReads, StepsPayForWhatIsRead) {
  const double block_us = 32 * 256 * 2 / 1e3;
  const double rest = StepUs(Cost(KvReading::kEachRow), 4, 100, true) - 400 * block_us;
  EXPECT_NEAR(StepUs(Cost(KvReading::kOnce), 4, 100, true) - rest, 100 * block_us, 1);
  EXPECT_NEAR(StepUs(Cost(KvReading::kOnce), 4, 100, false) - rest, 400 * block_us, 1);
  // There are 1.64 MB of distinct keys and values. 1 MB of them is still in the cache at the next
  // read.
  const double again = 1 - 1e6 / (100 * block_us * 1e3);
  EXPECT_NEAR(StepUs(Cost(KvReading::kCached), 4, 100, true) - rest, (100 + 300 * again) * block_us,
              1);
  EXPECT_NEAR(StepUs(Cost(KvReading::kCached), 4, 50, true) - rest, 50 * block_us, 1);
  EXPECT_NEAR(StepUs(Cost(KvReading::kCached), 4, 100, false) - rest, 400 * block_us, 1);
}

// A decoder with 8 query heads and 2 KV heads of 128 elements, on a device whose reads take hardly
// any time. Attention reaches a tenth of 1 TFLOP/s with one row, a fifth with 4 rows, two fifths
// with 16.
StepCost ArithmeticCost(KvReading reading) {
  DeviceDescription device = ParseDevice(R"({"name": "test", "tflops": {"bf16": 1},
      "bandwidth_gbps": 1e6, "memory_gb": 20, "cache_mb": 1, "matmul_efficiency": [[1, 1]],
      "attention_efficiency": [[1, 0.1], [4, 0.2], [16, 0.4]]})")
                                 .value();
  SimModelShape shape;
  shape.num_layers = 1;
  shape.head_dim = 128;
  shape.q_width = 8 * 128;
  shape.kv_width = 2 * 2 * 128;
  return StepCost::Make(device, shape, {}, reading).value();
}

// A matrix product has 4 rows, which are the queries of one sequence that share a KV head. If all
// sequences share the keys, a product has 16 rows: the queries of all of them.
TEST(KvReads, QueriesOfAKvHeadAreMultipliedTogether) {
  const double flops = 4.0 * 4 * (100 * kBlockTokens) * (8 * 128);
  const double alone_us = flops / (1e6 * 0.2), together_us = flops / (1e6 * 0.4);
  for (const KvReading reading : {KvReading::kEachRow, KvReading::kCached, KvReading::kOnce}) {
    const StepCost cost = ArithmeticCost(reading);
    EXPECT_NEAR(StepUs(cost, 4, 100, false), alone_us, 1e-4 * alone_us);
    const double shared_us = reading == KvReading::kOnce ? together_us : alone_us;
    EXPECT_NEAR(StepUs(cost, 4, 100, true), shared_us, 1e-4 * shared_us);
  }
  // A prefill row has as many rows as tokens, here one.
  const std::vector<BlockId> table(100);
  const PlanRow row = {
      .begin = 100 * kBlockTokens - 1, .tokens = std::span(&kToken, 1), .block_table = table};
  OneShotPlan prefill;
  prefill.rows.push_back(row);
  EXPECT_NEAR(ArithmeticCost(KvReading::kEachRow).StepUs(prefill), flops / 4 / (1e6 * 0.1),
              1e-4 * alone_us);
}

}  // namespace
}  // namespace skein
