#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/hash_slots.h"
#include "kv/prefix_hashes.h"

namespace skein {

// The room of one KV block in the memory of the host.
using HostSlot = int32_t;
inline constexpr HostSlot kNoSlot = -1;

// A copy of one whole block, over all layers, between the device and the host. Copies run in the
// order in which they were planned, each before the next begins. So the bookkeeping may give a slot
// or a block away as soon as its copy is planned.
struct HostCopy {
  BlockId block = 0;
  HostSlot slot = 0;
  bool to_host = false;  // else from the host to the device
  bool operator==(const HostCopy&) const = default;
};

// The key of one full block, without the identity of a block on the device.
struct HostKey {
  uint64_t hash = 0;               // covers all tokens up to the block's end
  std::optional<uint64_t> parent;  // the hash of the block before this one; unset for the first
  PrefixScope scope;
  std::span<const int32_t> tokens;  // [kBlockTokens], the tokens of this block
};

// The blocks that the host holds: which contents lie in which slot. It keeps contents that the
// device's pool has evicted, and drops the oldest of them if it has no room. The caller keeps the
// union of both tiers closed under prefixes: it saves a block when the block leaves the device,
// before the block's parent leaves. So the parent of a held block is on the device, or is newer
// here. Then the oldest contents never have a held child that is nowhere else. A hash names the
// same contents in both tiers, so a hit is confirmed by the parent's hash, the scope and the
// block's own tokens. Integers only; allocates nothing after construction. Not thread-safe. Every
// call is O(1) expected.
class HostTier {
 public:
  // 0 slots: it holds nothing. REQUIRES: num_slots >= 0.
  explicit HostTier(int32_t num_slots);

  int32_t num_slots() const { return static_cast<int32_t>(slots_.size()); }
  bool enabled() const { return !slots_.empty(); }
  int32_t size() const { return size_; }  // slots [0, size()) hold contents

  // Returns the slot with these contents, or kNoSlot.
  HostSlot Find(const HostKey& key) const;
  // Whether any contents have this hash.
  bool ContainsHash(uint64_t hash) const { return table_.Find(hash) != HashSlots::kNone; }

  struct Saved {
    HostSlot slot = kNoSlot;
    bool is_new = false;              // the contents must be copied into the slot
    std::optional<uint64_t> dropped;  // the hash of the contents that lay there before
  };
  // Holds these contents from now on, as the newest. REQUIRES: enabled(); no other contents have
  // the hash.
  Saved Save(const HostKey& key);

  // Makes the contents of the slot the newest, or the oldest. The oldest are dropped next.
  // REQUIRES: the slot holds contents; for Demote, the device holds them, too.
  void Touch(HostSlot slot);
  void Demote(HostSlot slot);

  // REQUIRES: the slot holds contents.
  HostKey KeyOf(HostSlot slot) const;

  // Aborts unless list, table and slots agree. O(num_slots).
  void CheckIntegrity() const;

 private:
  struct Slot {
    uint64_t hash = 0;
    std::optional<uint64_t> parent;
    PrefixScope scope;
    HostSlot older = kNoSlot;
    HostSlot newer = kNoSlot;
  };

  std::span<const int32_t> TokensOf(HostSlot slot) const {
    return std::span(tokens_).subspan(size_t{kBlockTokens} * slot, kBlockTokens);
  }
  void Unlink(HostSlot slot);
  void LinkNewest(HostSlot slot);

  std::vector<Slot> slots_;      // [num_slots]
  std::vector<int32_t> tokens_;  // [num_slots][kBlockTokens]
  HashSlots table_;
  HostSlot oldest_ = kNoSlot;
  HostSlot newest_ = kNoSlot;
  int32_t size_ = 0;
};

}  // namespace skein
