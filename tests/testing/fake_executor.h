#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/executor.h"
#include "engine/kv_port.h"
#include "skein/request.h"

namespace skein {

// An executor without a model, for tests. The next token is a function of the tokens before it and
// of (seed, sample), what is read and log-probabilities one of the tokens before them, computed
// from a shadow of the KV memory: every slot remembers its token and the hash of all tokens up to
// it, so a plan that reads a wrong, stale or unwritten block changes the answer. The same holds for
// states, of which a step destroys those that it overwrites as soon as it runs. It also aborts on
// plans that no device could run: a row that reads what another row of the step writes (its parent
// apart), history that differs from what the blocks hold, copies that overlap.
class FakeExecutor final : public Executor, public KvPort {
 public:
  struct Options {
    int32_t num_kv_blocks = 0;
    int32_t num_host_kv_blocks = 0;
    int32_t num_states = 0;  // RowState; 0: rows have none
    int32_t vocab_size = 0;
    TokenId poison_token = -1;  // a draw right after this token is not finite
    // Every so many operators Resume returns kPreempted, once each; 0: only when told to.
    int32_t preempt_every = 0;
    int64_t step_us = 0;               // real time that a step takes
    int64_t prefill_us = 0;            // and one that is not of decodes alone besides
    bool discards_kv = false;          // block tables may end before their rows
    bool reads_whole_prompts = false;  // rows that read an embedding or classes must be whole
    int32_t max_step_tokens = 0;       // of all rows; 0: any number, also of the next
    int32_t max_own_blocks = 0;        // that block tables do not have
  };

  explicit FakeExecutor(const Options& options);

  int32_t num_states() const override { return options_.num_states; }
  std::unique_ptr<Task> Begin(const StepPlan& plan) override;
  TaskStatus Resume(Task& task, const std::atomic<bool>& preempt) override;
  const StepResults& Results(const Task& task) const override;

  size_t port_bytes() const override { return kBlockTokens * sizeof(Slot); }
  void ExportBlock(BlockId block, std::span<std::byte> out) const override;
  void ImportBlock(BlockId block, std::span<const std::byte> in) override;

  int64_t num_host_copies() const { return num_host_copies_; }
  int64_t num_steps() const { return num_steps_; }

  // The tokens of one sample of `request` when nothing else runs, at most `budget`.
  static std::vector<TokenId> Expected(const Options& options, const Request& request,
                                       int32_t sample, int32_t budget);
  // The values read of `request`. REQUIRES: it does not generate.
  static ReadValues ExpectedRead(const Request& request);
  // The log-probabilities of its prompt, as far as it wants them.
  static std::vector<PromptLogprob> ExpectedPromptLogprobs(const Options& options,
                                                           const Request& request);

 private:
  struct Slot {
    TokenId token = -1;
    uint64_t history = 0;  // of the sequence up to here; 0: never written
  };

  void CheckRows(const std::vector<PlanRow>& rows, const std::vector<PlanRow>& more) const;
  void CheckFork(const PlanRow& row) const;
  void CheckStates(const PlanRow& row, std::map<StateId, SequenceId>* written) const;
  void TakeStarts(const std::vector<PlanRow>& rows);
  void Copy(const std::vector<BlockCopy>& copies);
  void CopyToOrFromHost(const HostCopy& copy);
  void ComputeRow(const PlanRow& row, StepResults* results);
  void CheckStart(const PlanRow& row, uint64_t history);
  void WriteStates(const PlanRow& row, int32_t num_tokens, uint64_t history);
  void ReadRow(const PlanRow& row, StepResults* results);
  void PromptLogprobsOfRow(const PlanRow& row, StepResults* results);
  Slot& At(const PlanRow& row, int32_t position);

  Options options_;
  std::vector<Slot> slots_;       // [num_kv_blocks][kBlockTokens]
  std::vector<uint64_t> states_;  // [num_states]: the history of the tokens behind it; 0: none
  std::map<SequenceId, uint64_t> starts_;  // that rows in flight overwrite
  std::vector<Slot> own_slots_;            // of the row at hand, behind what its block table covers
  std::vector<Slot> host_slots_;           // [num_host_kv_blocks][kBlockTokens]
  int64_t num_host_copies_ = 0;
  int64_t num_steps_ = 0;
  int64_t num_operators_ = 0;
};

}  // namespace skein
