#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/chunked_hash_tree.h"

namespace skein {

// A request that waits, as it is compared by tokens.
struct RadixPrompt {
  std::span<const int32_t> tokens;
  ChunkedHashTree::Rank rank;
};

// What adding a request would do, in tokens.
struct RadixCandidate {
  int32_t index = 0;  // of the waiting ones
  int32_t num_missing = 0;
  int32_t tip_before = 0;
  int32_t tip_after = 0;
  bool operator==(const RadixCandidate&) const = default;
};

// The choice of ChunkedHashTree (kLeastTipLoss) over a radix tree of the prompts in the batch,
// which is built anew, and in which every waiting prompt is looked up token by token: a yardstick
// for what hashes save. None where nobody waits.
std::optional<RadixCandidate> FindRadixCandidate(std::span<const std::span<const int32_t>> active,
                                                 std::span<const RadixPrompt> waiting);

// How many of the waiting prompts but number `index` begin with its first `num_tokens`.
int32_t CountRadixPeers(std::span<const RadixPrompt> waiting, int32_t index, int32_t num_tokens);

}  // namespace skein
