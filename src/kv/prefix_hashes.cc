#include "kv/prefix_hashes.h"

#include <array>

#include "base/hash.h"
#include "kv/block_pool.h"

namespace skein {

PrefixHashes::PrefixHashes(PrefixScope scope) : scope_(scope) {
  const std::array<uint64_t, 2> words = {static_cast<uint32_t>(scope.adapter_id), scope.cache_salt};
  root_ = HashWords(words, 0);
}

void PrefixHashes::Extend(std::span<const int32_t> tokens) {
  const size_t num_full = tokens.size() / kBlockTokens;
  while (hashes_.size() < num_full) {
    const uint64_t parent = hashes_.empty() ? root_ : hashes_.back();
    hashes_.push_back(
        HashTokens(tokens.subspan(hashes_.size() * kBlockTokens, kBlockTokens), parent));
  }
}

void PrefixHashes::Reserve(int64_t num_tokens) { hashes_.reserve(num_tokens / kBlockTokens); }

}  // namespace skein
