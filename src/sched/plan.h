#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "kv/block_pool.h"
#include "kv/host_tier.h"
#include "kv/state_pool.h"
#include "skein/request.h"

namespace skein {

class GrammarState;  // skein/token_grammar.h

// Names one sample of one request while it is being computed: the request's id and the sample's
// number.
using SequenceId = uint64_t;
inline constexpr int32_t kMaxSamples = 1 << 16;  // samples of one request

constexpr SequenceId MakeSequenceId(RequestId request, int32_t sample) {
  return request * kMaxSamples + static_cast<SequenceId>(sample);
}
// Sequences with request ids from this one on belong to no request. They are shared prefixes
// (sched/prefix/shared_prefix.h).
inline constexpr RequestId kFirstSharedPrefixId = RequestId{1} << 47;

constexpr RequestId RequestOf(SequenceId sequence) { return sequence / kMaxSamples; }
constexpr int32_t SampleOf(SequenceId sequence) {
  return static_cast<int32_t>(sequence % kMaxSamples);
}

// Whether `choice` begins with `output` and is longer: its next token is choice[output.size()].
inline bool GoesOn(std::span<const TokenId> choice, std::span<const TokenId> output) {
  return choice.size() > output.size() && std::ranges::equal(choice.first(output.size()), output);
}

// A draw from the logits at a row's last position.
struct DrawSpec {
  const GenerateSpec* generate = nullptr;
  int32_t sample = 0;                // the number of the request's sample
  std::span<const TokenId> history;  // prompt and output so far, for penalties and choices
  int32_t prompt_len = 0;            // history[0, prompt_len) is the prompt
  // The state of the sample's grammar, for the output history[prompt_len, end). Null: no grammar.
  GrammarState* grammar = nullptr;
  // The position of the drawn token among the sample's outputs is history.size() - prompt_len.
};

// The log-probabilities of the prompt's own tokens that a row delivers, for the positions begin,
// begin + 1, and so on. Each comes from the logits of the token before it.
struct PromptLogprobsRange {
  int32_t begin = 0;                // first position, > the row's begin
  std::span<const TokenId> tokens;  // the prompt's tokens at these positions; empty: none wanted
  int32_t num_top = 0;              // number of most likely tokens to report for each position
};

// The fork of a row, if the prefix that it shares with its parent ends inside a block. The row's
// own block for these positions gets a copy of the first `num_tokens` slots of the parent's block
// `from`. The copy is made layer by layer: after the parent's keys and values of the layer are
// written, and before the row's keys and values are read.
struct RowFork {
  BlockId from = 0;
  int32_t num_tokens = 0;  // below kBlockTokens; 0: no fork
};

// The most states within a row that it leaves as snapshots.
inline constexpr size_t kMaxRowSnapshots = 8;

// The states of a row, in a model with linear layers. The row starts from the state after the
// tokens before it, and leaves the state after its last token.
struct RowState {
  StateId from = kNoState;  // kNoState: the row begins its sequence
  StateId to = kNoState;    // may be `from`; kNoState: the state is not kept
  // The state after the tokens before position `at`, which lies within the row, is also kept here.
  struct Snapshot {
    StateId state = kNoState;
    int32_t at = 0;
  };
  std::array<Snapshot, kMaxRowSnapshots> snapshots = {};  // used entries come first, in order
};

// Consecutive tokens of one sequence, computed in one step:
//
//   0            begin         begin + tokens.size()
//   |-- in KV ---|-- computed --|
//
// The block table of a OneShot request covers all tokens before the row, but may end before the row
// does. Keys and values beyond the table are not kept. A row with such a table finishes the prompt.
//
// The row's parent may compute the positions before `begin` in the same step. The parent is an
// earlier row: the shared prefix of several requests. The row's table begins with the parent's full
// blocks. Rows of a step therefore form a forest, of depth two.
//
// Spans point into the scheduler's state and stay valid until the step has been completed.
struct PlanRow {
  SequenceId sequence = 0;
  int32_t begin = 0;
  std::span<const TokenId> tokens;       // [num_tokens >= 1]
  std::span<const BlockId> block_table;  // covers [0, begin + num_tokens), or less: see above
  // One entry for each sample that continues from the row's last position. A chunk that does not
  // finish the prompt has none, and neither has a row with a budget of 0 tokens. A row that
  // finishes the prompt has one for each sample of the request. A decode row has one.
  std::span<const DrawSpec> draws;
  // The output that is read at the row's last position, or over all positions of the row for pooled
  // embeddings. It may be any spec except a GenerateSpec. Null if the row reads nothing, as in a
  // chunk that does not finish the prompt.
  const OutputSpec* read = nullptr;
  PromptLogprobsRange prompt_logprobs;
  // The shared prefix that the first row of a sequence continues, computed in this step or earlier.
  // 0: there is none.
  SequenceId parent = 0;
  RowFork fork = {};
  RowState state = {};
  int32_t adapter_id = 0;  // Request::adapter_id
  // For models with segments: the position at which the second segment begins.
  int32_t second_segment_begin = std::numeric_limits<int32_t>::max();
  int32_t num_attended = std::numeric_limits<int32_t>::max();  // Request::num_attended
};

// In the results below, `finite` is false if the model's output held NaN or +inf. That request then
// fails; no other request does.
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

// The results of a step, by kind. Each list is in the order of the plan's rows, prefills before
// decodes.
struct StepResults {
  std::vector<DrawResult> draws;                      // one per draw
  std::vector<ReadResult> reads;                      // one per row with `read`
  std::vector<PromptLogprobsResult> prompt_logprobs;  // one for each row that wants some
};

// Block `to` becomes a copy of block `from` before the step's first operator runs (a fork). In one
// step, no block is both a source and a target.
struct BlockCopy {
  BlockId from = 0;
  BlockId to = 0;
};

// The type of a plan tells which work the device does, and which state may outlive the step. The
// `host_copies` of a plan are made in their order, before the copies of blocks and the rows.

// Complete or remaining prompts of requests that end with this step.
struct OneShotPlan {
  std::vector<PlanRow> rows;
  std::vector<HostCopy> host_copies = {};
};

// One token for each running sequence.
struct DecodePlan {
  std::vector<BlockCopy> copies;
  std::vector<PlanRow> rows;
  std::vector<HostCopy> host_copies = {};
};

// Prefill chunks (of either class) and decode rows, accounted separately.
struct MixedPlan {
  std::vector<BlockCopy> copies;
  std::vector<PlanRow> prefills;
  std::vector<PlanRow> decodes;
  std::vector<HostCopy> host_copies = {};
};

using StepPlan = std::variant<OneShotPlan, DecodePlan, MixedPlan>;

inline std::span<const HostCopy> HostCopiesOf(const StepPlan& plan) {
  return std::visit([](const auto& p) { return std::span<const HostCopy>(p.host_copies); }, plan);
}

}  // namespace skein
