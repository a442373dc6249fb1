#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skein/request.h"

namespace skein {

// The number of leading tokens that two sequences share. The last token of `a` or `b`, whichever is
// shorter, does not count: a child must compute a token of its own.
int32_t SharedLength(std::span<const TokenId> a, std::span<const TokenId> b);

// A sequence that might compute a prefix together with the head of the queue.
struct FamilyCandidate {
  std::span<const TokenId> tokens;
  // Tokens it is known to share with others (its group), of which the head is not one.
  int32_t other_prefix_len = 0;
};

struct Family {
  int32_t prefix_len = 0;        // of the head's tokens; 0: no candidate should join the head
  std::vector<int32_t> members;  // indices of candidates, ascending
};

// Chooses the candidates that share one prefix with the head, so that the most tokens are saved. It
// takes the first n candidates by descending shared length, with the n that makes n * (prefix -
// num_cached) largest. `num_cached` tokens need not be computed in any case. Candidates that share
// more with each other, or with their group, than with the head are left out: they form a family of
// their own. O(candidates * log(candidates) + tokens compared).
Family ChooseFamily(std::span<const TokenId> head, std::span<const FamilyCandidate> candidates,
                    int32_t num_cached);

}  // namespace skein
