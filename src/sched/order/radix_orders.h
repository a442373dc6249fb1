#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/radix_tree.h"

namespace skein {

// The two cache-aware orders of SGLang over its radix tree, as its authors describe them:
// yardsticks for what the chunked hash tree costs. Both look at every waiting request in every
// round, token by token; the fallback to arrival order for long queues is left out. `waiting`:
// prompts in order of arrival. Returns their indices, the first to be served first.

// Longest prefix match: the most cached tokens first, ties by arrival.
std::vector<int32_t> LpmOrder(const RadixTree& cached,
                              std::span<const std::span<const int32_t>> waiting);

// Depth-first over the tree of cached prefixes, the child with the most waiting requests below it
// first, ties by the first of these; the requests of a node after those of its children, by
// arrival.
std::vector<int32_t> DfsWeightOrder(const RadixTree& cached,
                                    std::span<const std::span<const int32_t>> waiting);

}  // namespace skein
