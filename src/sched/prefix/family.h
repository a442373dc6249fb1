#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skein/request.h"

namespace skein {

// Tokens that two sequences have in common from the first on, which at least the last token of each
// is not part of: a child must compute one of its own.
int32_t SharedLength(std::span<const TokenId> a, std::span<const TokenId> b);

// A sequence that might compute a prefix together with the head of the queue.
struct FamilyCandidate {
  std::span<const TokenId> tokens;
  // Tokens it is known to share with others (its group), of which the head is not one.
  int32_t other_prefix_len = 0;
};

struct Family {
  int32_t prefix_len = 0;        // of the head's tokens; 0: nobody should join the head
  std::vector<int32_t> members;  // indices of candidates, ascending
};

// Whom the head should share one common prefix with, so that the most tokens are saved: of the
// candidates by descending shared length the number n that makes n * (prefix - num_cached) largest,
// where num_cached tokens need not be computed in any case. Left out are candidates that have more
// in common with each other, or with their group, than with the head: they will form a family of
// their own. O(candidates * log(candidates) + tokens compared).
Family ChooseFamily(std::span<const TokenId> head, std::span<const FamilyCandidate> candidates,
                    int32_t num_cached);

}  // namespace skein
