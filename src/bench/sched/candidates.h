#pragma once

#include <array>

#include "sched/policies.h"
#include "skein/choice_names.h"

namespace skein {

// How the decode set `prefix-homogeneous` compares prefixes. Skein uses the first way; the other
// two are baselines for experiments.
enum class Candidates {
  kPrefix,  // by hashes of prompts, in a chunked hash tree
            // (sched/decode_set/candidate_source.h)
  kRadix,   // by tokens: every choice builds a radix tree of the batch
  kUser,    // by an oracle that knows the groups: `user` names a request's group
};

template <>
inline constexpr auto kChoiceNames<Candidates> = std::to_array<ChoiceName<Candidates>>(
    {{"prefix", Candidates::kPrefix}, {"radix", Candidates::kRadix}, {"user", Candidates::kUser}});

// The policies of Skein, with candidates that are found in this way.
PolicyLists PoliciesWith(Candidates candidates);

}  // namespace skein
