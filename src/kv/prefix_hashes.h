#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skein {

// What must be equal, beside the tokens, for two requests to share KV blocks.
struct PrefixScope {
  int32_t adapter_id = 0;
  uint64_t cache_salt = 0;
  bool operator==(const PrefixScope&) const = default;
};

// The hashes of a token sequence's full blocks: number i covers the scope and all tokens up to the
// end of block i. Grows with the sequence; each token is hashed once. One vector per request serves
// everything that compares prefixes.
class PrefixHashes {
 public:
  explicit PrefixHashes(PrefixScope scope = {});

  // Hashes the full blocks of `tokens` that are not hashed yet. REQUIRES: `tokens` continues the
  // tokens given so far.
  void Extend(std::span<const int32_t> tokens);
  // Makes room for so many tokens, so that Extend allocates nothing up to there.
  void Reserve(int64_t num_tokens);

  const PrefixScope& scope() const { return scope_; }
  int32_t num_blocks() const { return static_cast<int32_t>(hashes_.size()); }
  uint64_t operator[](int32_t block) const { return hashes_[block]; }
  std::span<const uint64_t> blocks() const { return hashes_; }
  uint64_t root() const { return root_; }  // of the scope alone, before the first block

 private:
  PrefixScope scope_;
  uint64_t root_;
  std::vector<uint64_t> hashes_;
};

}  // namespace skein
