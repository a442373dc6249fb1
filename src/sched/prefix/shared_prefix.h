#pragma once

#include <cstdint>
#include <vector>

#include "sched/plan.h"
#include "sched/sequence_blocks.h"

namespace skein {

struct Sequence;

// A prefix that a waiting OneShot request has in common with other requests and that is not cached:
// the parent row of a forest. The prefix is computed once. Each member then begins at the prefix's
// end, in the same step or in later steps:
//
//   0            num_cached          num_computed        tokens.size()
//   |-- attached ---|-- computed -------|-- to do -----------|
//                                                            |-- member 1 --|
//                                                            |-- member 2 ------|
//
// The prefix is exact to the token. If it ends inside a block, each member's first own block begins
// as a copy of the prefix's last block. A shared prefix belongs to no request, so no cancellation
// or failure of a member touches the others. The prefix lives until its last member has computed
// its first tokens. Between steps it may be given up at any time: its full blocks stay in the
// prefix cache, and its members are planned anew.
struct SharedPrefix {
  explicit SharedPrefix(PrefixScope scope) : blocks(scope) {}

  SequenceId id = 0;
  std::vector<TokenId> tokens;
  int32_t num_cached = 0;    // tokens attached from the prefix cache
  int32_t num_computed = 0;  // tokens with keys and values in `blocks`
  int32_t num_planned = 0;   // tokens computed in this step
  bool in_step = false;      // the prefix, or the first tokens of a member, are in the current step
  bool suspended = false;    // a part of the prefix is in a suspended step
  int32_t num_admitted = 0;  // members that hold the prefix's blocks
  SequenceBlocks blocks;
  std::vector<Sequence*> members;  // those that have not computed their first tokens

  int32_t length() const { return static_cast<int32_t>(tokens.size()); }
  // Whether members may be planned: the prefix is computed, or will be in this step.
  bool ready() const { return num_computed + num_planned == length(); }
};

}  // namespace skein
