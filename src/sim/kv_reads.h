#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/plan.h"

namespace skein {

// The KV cache that the decode rows of a step read, in tokens of one layer. Rows share the common
// beginning of their block tables, and subsets of the rows may share more:
struct KvReads {
  // `tokens` distinct tokens, each read by `rows` rows.
  struct Run {
    int32_t rows = 0;
    int64_t tokens = 0;
    bool operator==(const Run&) const = default;
  };
  int64_t num_rows = 0;
  int64_t asked = 0;      // sum over rows of the tokens that the row reads
  int64_t unique = 0;     // distinct tokens
  std::vector<Run> runs;  // together these are all distinct tokens
};

// REQUIRES: each row has one token. Costs a sort of the rows by their block tables.
KvReads CountKvReads(std::span<const PlanRow> decodes);

// The decode rows of a step.
std::span<const PlanRow> DecodesOf(const StepPlan& plan);

// Sums over many steps.
struct KvReadTotals {
  int64_t steps = 0;  // steps with decode rows
  int64_t rows = 0;
  int64_t asked = 0;
  int64_t unique = 0;

  void Add(const KvReads& reads);
  void Add(const KvReadTotals& other);
};

}  // namespace skein
