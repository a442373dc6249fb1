#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/admission.h"
#include "sched/context.h"
#include "sched/order/ranks.h"
#include "sched/prefix/shared_prefixes.h"
#include "sched/step.h"

namespace skein {

// Fills one step within the token budget: decodes, one token each, then chunks of prompts. Started
// prompts come first (the most urgent one first if the order is by deadline), then waiting prompts
// in order. OneShot requests take no decode slot, so they pass requests that wait for a slot. No
// request passes a request that waits for blocks. With forests, OneShot requests may do so, since
// their blocks are free again after their step. Not thread-safe. A steady decode step allocates
// nothing.
class StepBuilder {
 public:
  // `step` is filled anew in every round. It outlives the builder.
  StepBuilder(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes,
              Admission* admission, Step* step);

  void Begin(TimeUs now_us);
  // Limits the step to prompts that are more urgent than a suspended step with this key; nullopt:
  // no step is suspended.
  void SetBound(const std::optional<SequenceKey>& bound);
  // Limits the step to `num_tokens` more tokens.
  void LimitTokens(int64_t num_tokens);

  // Adds all decodes, or only the decodes that may share a step with prompts.
  void AddDecodes(bool all);
  void RemoveDecodes();
  void AddPrompts();

 private:
  enum class Added {
    kYes,
    kLater,     // it waits for a row of this step that computes its prefix
    kNoBlocks,  // not enough blocks are free now
    kNoTokens,  // not enough tokens are left in this step
  };

  void AddStartedPrompts();
  void AddWaiting(const std::optional<SequenceKey>& bound);
  bool SkipsClass(Sequence* head, bool* want_oneshot, bool* want_decode);
  Added AddHead(Sequence* head);
  bool AddChunk(Sequence* sequence);
  int32_t ChunkOf(const Sequence& sequence) const;
  int32_t CutAtBlock(int32_t begin, int32_t num_tokens) const;
  bool AddWholePrompt(Sequence* sequence);
  // `key`: the key of the member that is being added.
  bool AddSharedPrefix(SharedPrefix* prefix, const SequenceKey& key);
  // As Admission::BeginRow. Younger prompts give up their states, if need be.
  bool BeginRow(Sequence* sequence, int32_t num_tokens);
  // Whether a prompt that had started before this round gave up its state in the round.
  bool GaveUpState(const Sequence& started) const;

  Sequence* NextWaiting(bool want_oneshot, bool want_decode,
                        const std::optional<SequenceKey>& bound);
  Sequence* NextHead(bool want_oneshot, bool want_decode, const std::optional<SequenceKey>& bound);
  Sequence* NextThatFits(int64_t max_tokens, bool want_oneshot, bool want_decode,
                         const std::optional<SequenceKey>& bound);
  Sequence* NextOfDecodeSet(int32_t max_tokens, const std::optional<SequenceKey>& bound);

  bool HasRoomFor(const Sequence& sequence) const;
  bool IsCompatible(const Sequence& sequence) const;
  // Whether urgent waiting requests go before started prompts.
  bool PrefersUrgentToStarted() const;
  bool SetChooses() const { return decode_set_->Chooses() && !decode_set_->FollowsOrder(); }
  const StepRow* LeaderOf(const Sequence& head, int32_t num_cached) const;
  static int32_t CommonLength(const StepRow& leader, const Sequence& head);
  bool IsWorthWaiting(const StepRow& leader, const Sequence& head, int32_t num_cached) const;
  bool WaitsForPrefix(Sequence* head);
  StepSoFar SoFar() const {
    return {step_.prefills, config_.max_num_batched_tokens - tokens_left_, now_us_};
  }

  const SchedulerConfig& config_;
  const BlockManager* const blocks_;
  RequestTable* const table_;
  OrderPolicy* const order_;
  BatchingPolicy* const batching_;
  DecodeSetPolicy* const decode_set_;
  EngineStats* const stats_;
  Ranks* const ranks_;
  SharedPrefixes* const prefixes_;
  Admission* const admission_;
  const int32_t max_own_blocks_;

  // The state of this round:
  Step& step_;
  TimeUs now_us_ = 0;
  std::optional<SequenceKey> bound_;
  int32_t tokens_left_ = 0;
  int32_t own_blocks_left_ = 0;           // what is left of StepBounds::max_own_blocks
  std::optional<SequenceKey> walked_to_;  // the last sequence in the order that was considered
  std::vector<Sequence*> started_;        // scratch of AddStartedPrompts
  std::vector<Sequence*> deferred_;       // requests that wait for a row of this step
};

}  // namespace skein
