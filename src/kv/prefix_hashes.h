#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace skein {

// The properties, besides the tokens, that two requests must have in common to share KV blocks.
struct PrefixScope {
  int32_t adapter_id = 0;
  uint64_t cache_salt = 0;
  bool operator==(const PrefixScope&) const = default;
};

// The hashes of a token sequence's full blocks. Number i covers the scope and all tokens up to the
// end of block i. The vector grows with the sequence; each token is hashed once. One vector per
// request is enough for all comparisons of prefixes.
class PrefixHashes {
 public:
  explicit PrefixHashes(PrefixScope scope = {});

  // Hashes the new full blocks of `tokens`. REQUIRES: `tokens` continues the tokens given so far.
  void Extend(std::span<const int32_t> tokens);
  // Makes room for `num_tokens` tokens. Extend allocates nothing up to that number.
  void Reserve(int64_t num_tokens);

  const PrefixScope& scope() const { return scope_; }
  int32_t num_blocks() const { return static_cast<int32_t>(hashes_.size()); }
  uint64_t operator[](int32_t block) const { return hashes_[block]; }
  std::span<const uint64_t> blocks() const { return hashes_; }
  uint64_t root() const { return root_; }  // the hash of the scope alone, before the first block

 private:
  PrefixScope scope_;
  uint64_t root_;
  std::vector<uint64_t> hashes_;
};

}  // namespace skein
