#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/chunked_hash_tree.h"

namespace skein {

// A waiting request, whose tokens are compared one by one.
struct RadixPrompt {
  std::span<const int32_t> tokens;
  ChunkedHashTree::Rank rank;
};

// The effect of adding a request to the batch, in tokens.
struct RadixCandidate {
  int32_t index = 0;  // index among the waiting requests
  int32_t num_missing = 0;
  int32_t shared_before = 0;
  int32_t shared_after = 0;
  bool operator==(const RadixCandidate&) const = default;
};

// Makes the choice of ChunkedHashTree (kLeastPrefixLoss) over a radix tree of the prompts in the
// batch. The tree is built anew for each choice, and every waiting prompt is looked up token by
// token. This is a baseline that shows the savings of hashes. nullopt if no request waits.
std::optional<RadixCandidate> FindRadixCandidate(std::span<const std::span<const int32_t>> active,
                                                 std::span<const RadixPrompt> waiting);

// The number of waiting prompts, other than `index`, that begin with the first `num_tokens` tokens
// of prompt `index`.
int32_t CountRadixPeers(std::span<const RadixPrompt> waiting, int32_t index, int32_t num_tokens);

}  // namespace skein
