#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/recent_prefixes.h"
#include "sched/context.h"
#include "sched/order/ranks.h"
#include "sched/prefix/shared_prefixes.h"
#include "sched/step.h"

namespace skein {

// Manages slots and KV blocks. It decides which waiting sequence may begin, how many blocks are
// reserved for it, and which running sequence gives its blocks back.
//
// OneShot work never keeps a block from Decode work. Between steps it holds shared prefixes and
// partly computed prompts. It gives them up when a running decode, or a waiting decode with a free
// slot, lacks blocks. OneShot work takes no block that the next waiting decode could have. Not
// thread-safe.
class Admission {
 public:
  Admission(const SchedulerContext& context, Ranks* ranks, SharedPrefixes* prefixes);

  void BeginRound(int64_t iteration, TimeUs now_us);
  // Whether the step being planned goes before a suspended step. It may then use the express
  // blocks.
  void set_preempts(bool preempts) { preempts_ = preempts; }
  // Whether a decode has taken blocks from other sequences in this round. Those blocks are not
  // given away again.
  bool preempted_in_round() const { return preempted_in_round_; }

  // For retention `value`: counts the tokens that the prompt shares with the latest prompts.
  void NoteArrival(const Sequence& sequence);
  // Slots that are free for further samples.
  int32_t NumFreeSlots() const;
  // Whether the decode set has slots for the sequence in this batch.
  bool MayJoin(const Sequence& sequence) const;
  // Whether the sequence finds a slot and blocks while suspended steps keep theirs.
  bool CouldBegin(const Sequence& sequence) const;
  // Whether the first request of the order begins next in its class, regardless of the decode set.
  // This includes a request that presses and, if the order is by deadlines, a request with a
  // deadline of its own.
  bool GoesByOrder(const Sequence& first) const;
  // Whether the first request of the order, a Decode-class one that the decode set has not chosen,
  // goes before a step with the key `step`. An earlier arrival alone does not suffice, or the order
  // would replace the set. If steps stop only in need, none has stopped for such a request: a
  // request with a deadline goes by the order.
  bool GoesBefore(const Sequence& first, const SequenceKey& step) const;

  bool DiscardsKv(const Sequence& sequence) const {
    return sequence.oneshot() && config_.policies.retention != Retention::kAll;
  }
  // Whether the sequence's prompt is computed in one step, however long.
  bool RunsInOneStep(const Sequence& sequence) const {
    return sequence.request->whole || DiscardsKv(sequence);
  }
  // Tokens of a waiting request's prompt that are neither cached nor part of its shared prefix.
  int32_t NumMissing(const Sequence& sequence) const;
  // Blocks that are available to a Decode-class request if everything reclaimable is given up.
  int32_t NumBlocksForDecodes() const;
  // Blocks that OneShot work must leave for the next Decode request, if that request could run now.
  int32_t DecodeReserve();
  // Takes the blocks that decodes need in this round from OneShot work.
  void ReclaimForDecodes();

  // Gives a waiting sequence slots and blocks. Returns false if there are not enough blocks.
  bool Admit(Sequence* sequence);
  // Prepares the sequence's next row, of `num_tokens` tokens. Returns false if no state is
  // available for the row's end.
  bool BeginRow(Sequence* sequence, int32_t num_tokens);
  // The row that has begun is not planned after all.
  void CancelRow(Sequence* sequence) { sequence->blocks.CancelRow(blocks_); }
  // Lets the row, which is not yet planned, or a later row leave a snapshot at the last block end
  // within these tokens. Does nothing in a model without states.
  void AddSnapshot(const StepRow& row, int32_t num_tokens);
  // Frees a state for a row of a sequence or prefix with this key. Gives up a shared prefix other
  // than `except`, or a younger, partly computed prompt without a row in `planned`. Returns false
  // if there is neither.
  bool ReclaimState(const SequenceKey& key, const SharedPrefix* except,
                    std::span<const StepRow> planned);
  // Tells that the row will not be computed. Returns false if the sequence must begin anew
  // (Preempt).
  bool AbandonRow(Sequence* sequence) { return sequence->blocks.AbandonRow(blocks_); }
  // Gives a decode the block of its next token, if need be by preempting a younger sequence.
  // Returns false if the decode itself is the youngest: it is preempted then, and waits.
  bool FindDecodeBlock(Sequence* sequence);
  // Takes all blocks and slots from a running sequence. The sequence waits to be computed again.
  void Preempt(Sequence* sequence);

  // Moves one slot from `carrier`, which holds the slots of all samples, to the further sample
  // `child`. If `runs` is false, the child gives the slot back, since it found no block.
  void MoveSlot(Sequence* carrier, Sequence* child, bool runs);
  void ReleaseSlots(Sequence* sequence, int32_t count);
  void ReleaseBlocks(Sequence* sequence);
  // Slots of ended samples that a request-level batch still holds; EndBatch frees them.
  int32_t num_idle_slots() const { return num_idle_slots_; }
  void EndBatch();

  void CheckIntegrity() const;

 private:
  int32_t ExpressReserve() const;
  const Sequence* ExpectedDecode();
  bool WillJoin(const Sequence& next, int32_t num_needed, int32_t num_blocks);
  bool ReclaimOneShot();
  SequenceBlocks::Hold HoldOf(const Sequence& sequence) const;
  bool AttachBlocks(Sequence* sequence);
  bool AttachForRows(Sequence* sequence);  // with the state that a Decode request needs
  void CheckStates() const;
  void NoteAdmission(Sequence* sequence);
  void NoteFirstAdmission(Sequence* sequence);

  const SchedulerConfig& config_;
  BlockManager* const blocks_;
  const CostModel* const cost_;
  RequestTable* const table_;
  OrderPolicy* const order_;
  DecodeSetPolicy* const decode_set_;
  EngineStats* const stats_;
  Ranks* const ranks_;
  SharedPrefixes* const prefixes_;
  std::optional<RecentPrefixes> recent_;  // with retention `value`: of OneShot requests
  int32_t slots_used_ = 0;
  int32_t num_idle_slots_ = 0;
  // The state of this round:
  int64_t iteration_ = 0;
  TimeUs now_us_ = 0;
  bool preempts_ = false;
  bool preempted_in_round_ = false;
  const Sequence* reserved_for_ = nullptr;
  int32_t num_reserved_ = 0;
};

}  // namespace skein
