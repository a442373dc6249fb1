#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "kv/block_pool.h"
#include "skein/request.h"

namespace skein {

// One sample of one request while it is being computed: the request's id and the sample's number.
using SequenceId = uint64_t;
inline constexpr int32_t kMaxSamples = 1 << 16;  // of one request

constexpr SequenceId MakeSequenceId(RequestId request, int32_t sample) {
  return request * kMaxSamples + static_cast<SequenceId>(sample);
}
// Sequences of requests from here on belong to no request: they are the common prefixes that are
// computed once for several (sched/prefix/shared_prefix.h).
inline constexpr RequestId kFirstSharedPrefixId = RequestId{1} << 47;

constexpr RequestId RequestOf(SequenceId sequence) { return sequence / kMaxSamples; }
constexpr int32_t SampleOf(SequenceId sequence) {
  return static_cast<int32_t>(sequence % kMaxSamples);
}

// Whether `choice` begins with `output` and goes on: its next token is choice[output.size()].
inline bool GoesOn(std::span<const TokenId> choice, std::span<const TokenId> output) {
  return choice.size() > output.size() && std::ranges::equal(choice.first(output.size()), output);
}

// A draw from the logits at a row's last position.
struct DrawSpec {
  const GenerateSpec* generate = nullptr;
  int32_t sample = 0;                // which of the request's samples
  std::span<const TokenId> history;  // prompt and output so far, for penalties and choices
  int32_t prompt_len = 0;            // history[0, prompt_len) is the prompt
  // The position of the drawn token among the sample's outputs is history.size() - prompt_len.
};

// Log-probabilities of the prompt's own tokens that a row delivers: of positions begin, begin + 1,
// ..., each from the logits of the token before it.
struct PromptLogprobsRange {
  int32_t begin = 0;                // > the row's begin
  std::span<const TokenId> tokens;  // the prompt's own at these positions; empty: none wanted
  int32_t num_top = 0;              // how many of the most likely to name beside each
};

// Where a prefix that a row shares with its parent ends inside a block: the row's own block of
// these positions takes over the first `num_tokens` slots of the parent's block `from`, layer by
// layer, once the layer's keys and values of the parent are there and before those of the row are
// read.
struct RowFork {
  BlockId from = 0;
  int32_t num_tokens = 0;  // below kBlockTokens; 0: no fork
};

// Consecutive tokens of one sequence, computed in one step:
//
//   0            begin         begin + tokens.size()
//   |-- in KV ---|-- computed --|
//
// The block table of a OneShot request may end before its row does, but not before what precedes
// the row: what it does not cover is not kept, and the row finishes the prompt.
//
// The positions before `begin` may be computed in the same step by the row's parent, an earlier row
// that stands for the common prefix of several: its table begins with the parent's full blocks.
// Rows of a step therefore form a forest, of depth two.
//
// Spans point into the scheduler's state and stay valid until the step has been completed.
struct PlanRow {
  SequenceId sequence = 0;
  int32_t begin = 0;
  std::span<const TokenId> tokens;       // [num_tokens >= 1]
  std::span<const BlockId> block_table;  // covers [0, begin + num_tokens), or less: see above
  // One entry for each sample that continues from the row's last position. Empty for a chunk that
  // does not finish the prompt, and where nothing is to be drawn (a budget of 0 tokens); one for
  // each of the request's samples where it finishes the prompt; else one.
  std::span<const DrawSpec> draws;
  // What is read at the row's last position, or of the whole row where embeddings are pooled over
  // it: a LabelSpec, an EmbedSpec or a ClassifySpec. Null where nothing is, as in a chunk that does
  // not finish the prompt.
  const OutputSpec* read = nullptr;
  PromptLogprobsRange prompt_logprobs;
  // Where the first row of a sequence continues a common prefix: that prefix, computed in this step
  // or before. Else 0.
  SequenceId parent = 0;
  RowFork fork = {};
  // Models with segments: the position at which the second one begins.
  int32_t second_segment_begin = std::numeric_limits<int32_t>::max();
};

// In the results below, `finite` false: the model's output held NaN or +inf. The request fails, no
// other does.
struct DrawResult {
  OutputToken token;
  bool finite = true;
};

struct ReadResult {
  ReadValues values;
  bool finite = true;
};

struct PromptLogprobsResult {
  std::vector<PromptLogprob> logprobs;  // ascending
  bool finite = true;
};

// What a step yields, by kind; each in the order of the plan's rows, prefills before decodes.
struct StepResults {
  std::vector<DrawResult> draws;                      // one per draw
  std::vector<ReadResult> reads;                      // one per row with `read`
  std::vector<PromptLogprobsResult> prompt_logprobs;  // one per row that wants any
};

// Block `to` becomes a copy of block `from` before the step's first operator runs (a fork). No
// block is both copied from and copied to in one step.
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
