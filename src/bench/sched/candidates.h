#pragma once

#include <array>

#include "sched/policies.h"
#include "skein/choice_names.h"

namespace skein {

// The way in which the decode set `prefix-homogeneous` compares prefixes. Skein serves by the
// first; the others are yardsticks of experiments.
enum class Candidates {
  kPrefix,  // by the hashes of prompts, in a chunked hash tree
            // (sched/decode_set/candidate_source.h)
  kRadix,   // token by token: every choice builds a radix tree of the batch
  kUser,    // by an oracle that is told the groups: `user` names a request's group
};

template <>
inline constexpr auto kChoiceNames<Candidates> = std::to_array<ChoiceName<Candidates>>(
    {{"prefix", Candidates::kPrefix}, {"radix", Candidates::kRadix}, {"user", Candidates::kUser}});

// The policies of Skein, with candidates found in this way.
PolicyLists PoliciesWith(Candidates candidates);

}  // namespace skein
