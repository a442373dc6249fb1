#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/plan.h"

namespace skein {

// What the decode rows of a step read of the KV cache, in tokens of one layer. Rows share what
// their block tables have in common from the first block on, at any depth:
//
//   row 0  |====== shared by 3 ======|= by 2 =|own|
//   row 1  |=========================|========|-- own --|
//   row 2  |=========================|-- own --|
struct KvReads {
  // `tokens` different ones, each of which `rows` rows read.
  struct Run {
    int32_t rows = 0;
    int64_t tokens = 0;
    bool operator==(const Run&) const = default;
  };
  int64_t num_rows = 0;
  int64_t asked = 0;      // of each row anew
  int64_t unique = 0;     // each once
  std::vector<Run> runs;  // together all unique ones
};

// REQUIRES: rows of one token. Costs a sort of the rows by their tables.
KvReads CountKvReads(std::span<const PlanRow> decodes);

// The decode rows of a step.
std::span<const PlanRow> DecodesOf(const StepPlan& plan);

// Over many steps.
struct KvReadTotals {
  int64_t steps = 0;  // with decode rows
  int64_t rows = 0;
  int64_t asked = 0;
  int64_t unique = 0;

  void Add(const KvReads& reads);
  void Add(const KvReadTotals& other);
};

}  // namespace skein
