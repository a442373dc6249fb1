#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/sched/radix_tree.h"

namespace skein {

// The two cache-aware orders of SGLang over its radix tree, as described by its authors: baselines
// for the cost of the chunked hash tree. Both compare every waiting request in every round, token
// by token; SGLang's fallback to arrival order for long queues is left out. `waiting` has the
// prompts in order of arrival. The result has their indices in the order of service.

// Longest prefix match: requests with the most cached tokens first; ties by arrival.
std::vector<int32_t> LpmOrder(const RadixTree& cached,
                              std::span<const std::span<const int32_t>> waiting);

// Depth-first order over the tree of cached prefixes. The child with the most waiting requests
// below it goes first; ties by the first arrival of these requests. The requests of a node follow
// those of its children, in order of arrival.
std::vector<int32_t> DfsWeightOrder(const RadixTree& cached,
                                    std::span<const std::span<const int32_t>> waiting);

}  // namespace skein
