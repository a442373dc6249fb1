#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "kv/block_pool.h"
#include "skein/request.h"

namespace skein {

// One sample of one request while it is being computed.
using SequenceId = uint64_t;

// A draw from the logits at a row's last position.
struct DrawSpec {
  const GenerateSpec* generate = nullptr;
  int32_t sample = 0;                 // which of the request's samples
  std::span<const TokenId> history;   // prompt and output so far, for the penalties
  int32_t prompt_len = 0;             // history[0, prompt_len) is the prompt
  // The position of the drawn token among the sample's outputs is history.size() - prompt_len.
};

// Consecutive tokens of one sequence, computed in one step:
//
//   0            begin         begin + tokens.size()
//   |-- in KV ---|-- computed --|
//
// Spans point into the scheduler's state and stay valid until the step has been completed.
struct PlanRow {
  SequenceId sequence = 0;
  int32_t begin = 0;
  std::span<const TokenId> tokens;       // [num_tokens >= 1]
  std::span<const BlockId> block_table;  // covers [0, begin + num_tokens)
  // Empty for a chunk that is not the prompt's last; num_samples entries for one that is.
  std::span<const DrawSpec> draws;
};

// Block `to` becomes a copy of block `from` before the step's first operator runs (a fork).
struct BlockCopy {
  BlockId from = 0;
  BlockId to = 0;
};

// A typed plan says what the device must do and what may outlive it.

// Whole or remaining prompts whose requests end with this step.
struct OneShotPlan {
  std::vector<PlanRow> rows;
};

// One token for each running sequence.
struct DecodePlan {
  std::vector<BlockCopy> copies;
  std::vector<PlanRow> rows;
};

// Prefill chunks (of either class) and decode rows, accounted separately.
struct MixedPlan {
  std::vector<BlockCopy> copies;
  std::vector<PlanRow> prefills;
  std::vector<PlanRow> decodes;
};

using StepPlan = std::variant<OneShotPlan, DecodePlan, MixedPlan>;

}  // namespace skein
