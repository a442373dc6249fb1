#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skein/request.h"

namespace skein {

// The number of leading tokens that two sequences share. The last token of the shorter one does not
// count: a member must compute at least one token of its own.
int32_t SharedLength(std::span<const TokenId> a, std::span<const TokenId> b);

// A sequence that might share a prefix with the request at the head of the queue (`head`).
struct FamilyCandidate {
  std::span<const TokenId> tokens;
  // Tokens that the candidate is known to share with others (its group), if the head is not one of
  // them.
  int32_t other_prefix_len = 0;
};

struct Family {
  int32_t prefix_len = 0;        // of the head's tokens; 0: no candidate should share with the head
  std::vector<int32_t> members;  // indices of candidates, ascending
};

// Chooses the candidates that share one prefix with the head, so that the most tokens are saved.
// The candidates are taken in descending order of shared length. The first n are chosen, with the n
// that makes n * (prefix - num_cached) largest. `num_cached` tokens of the head need not be
// computed in any case. Candidates that share more with each other, or with their group, than with
// the head are left out: they form their own family. O(candidates * log(candidates) + tokens
// compared).
Family ChooseFamily(std::span<const TokenId> head, std::span<const FamilyCandidate> candidates,
                    int32_t num_cached);

}  // namespace skein
