#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sched/context.h"
#include "sched/order/ranks.h"
#include "sched/prefix/shared_prefix.h"
#include "sched/step.h"

namespace skein {

// The shared prefixes that are being computed, and the sequences that continue them. Between steps,
// each prefix may be given up for its blocks. Not thread-safe.
class SharedPrefixes {
 public:
  SharedPrefixes(const SchedulerContext& context, Ranks* ranks);

  // Lets `head` continue an existing shared prefix that is longer than its cached prefix.
  void JoinExisting(Sequence* head);
  // Makes a shared prefix of the tokens that `head` and its peers have in common, if that saves
  // tokens. There must be free blocks for the prefix, for `num_blocks` blocks of the head and for
  // `reserve()`. `reserve` is called only if a prefix can be made.
  void Form(Sequence* head, int32_t num_blocks, const std::function<int32_t()>& reserve);
  // Gives `sequence` the blocks of its prefix, and behind them the blocks of `hold`. Returns false,
  // and changes nothing, if fewer than `num_reserved` blocks would remain available.
  bool Attach(Sequence* sequence, const SequenceBlocks::Hold& hold, int32_t num_reserved);
  // Removes the sequence from its prefix, if it has one. A prefix without members is deleted.
  void Leave(Sequence* sequence);

  // Prepares a row of the prefix's next `num_tokens` tokens. Returns false if no state is available
  // for the row.
  bool BeginRow(SharedPrefix* prefix, int32_t num_tokens);
  // The row's tokens of a prefix are computed. Members that wait have as many fewer to compute.
  void Complete(const StepRow& row, TimeUs now_us);
  // Notes which prefixes the suspended steps and the rows `current` depend on.
  void Mark(std::span<const Step> suspended, std::span<const StepRow> current);
  // The prefix's next row will not be computed. The prefix, which may have been deleted, is given
  // up if its state is lost. REQUIRES: no step depends on the prefix, and no member holds its
  // blocks.
  void Abandon(SharedPrefix* prefix);
  // Forgets prefixes on which nothing depends.
  void Sweep();

  // Gives up the youngest prefix, other than `except`, on which no step depends. Returns false if
  // there is none.
  bool Reclaim(const SharedPrefix* except);
  // The number of blocks of all prefixes, and of the prefixes that Reclaim may give up.
  int32_t NumBlocks() const;
  int32_t NumReclaimableBlocks() const;

  void CountReferences(std::span<int32_t> counts) const;
  void CountStates(std::span<int32_t> counts) const;
  void CheckIntegrity() const;

 private:
  void Join(Sequence* sequence, SharedPrefix* prefix);
  std::vector<Sequence*> FindPeers(const Sequence& head);
  void GiveUp(SharedPrefix* prefix);
  static bool IsReclaimable(const SharedPrefix& prefix) {
    return !prefix.in_step && prefix.num_admitted == 0;
  }

  BlockManager* const blocks_;
  const RequestTable* const table_;
  EngineStats* const stats_;
  Ranks* const ranks_;
  std::vector<std::unique_ptr<SharedPrefix>> prefixes_;
  RequestId next_id_ = kFirstSharedPrefixId;
};

}  // namespace skein
