#include "kv/host_tier.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

HostTier::HostTier(int32_t num_slots) : table_(num_slots) {
  slots_.resize(num_slots);
  tokens_.resize(size_t{kBlockTokens} * num_slots);
}

HostSlot HostTier::Find(const HostKey& key) const {
  const HostSlot slot = table_.Find(key.hash);
  if (slot == HashSlots::kNone) return kNoSlot;
  const Slot& held = slots_[slot];
  const bool same = held.parent == key.parent && held.scope == key.scope &&
                    std::ranges::equal(TokensOf(slot), key.tokens);
  return same ? slot : kNoSlot;
}

HostTier::Saved HostTier::Save(const HostKey& key) {
  SKEIN_CHECK(enabled() && key.tokens.size() == kBlockTokens);
  Saved saved = {.slot = Find(key)};
  if (saved.slot != kNoSlot) {
    Touch(saved.slot);
    return saved;
  }
  saved.is_new = true;
  if (size_ < num_slots()) {
    saved.slot = size_++;
  } else {
    saved.slot = oldest_;
    saved.dropped = slots_[oldest_].hash;
    table_.Erase(*saved.dropped);
    Unlink(saved.slot);
  }
  slots_[saved.slot] = {.hash = key.hash, .parent = key.parent, .scope = key.scope};
  std::ranges::copy(key.tokens, tokens_.begin() + std::ptrdiff_t{kBlockTokens} * saved.slot);
  table_.Insert(key.hash, saved.slot);
  LinkNewest(saved.slot);
  return saved;
}

void HostTier::Touch(HostSlot slot) {
  SKEIN_CHECK(slot >= 0 && slot < size_);
  Unlink(slot);
  LinkNewest(slot);
}

void HostTier::Demote(HostSlot slot) {
  SKEIN_CHECK(slot >= 0 && slot < size_);
  Unlink(slot);
  slots_[slot].newer = oldest_;
  (oldest_ == kNoSlot ? newest_ : slots_[oldest_].older) = slot;
  oldest_ = slot;
}

HostKey HostTier::KeyOf(HostSlot slot) const {
  SKEIN_CHECK(slot >= 0 && slot < size_);
  const Slot& held = slots_[slot];
  return {.hash = held.hash, .parent = held.parent, .scope = held.scope, .tokens = TokensOf(slot)};
}

void HostTier::Unlink(HostSlot slot) {
  Slot& held = slots_[slot];
  (held.older == kNoSlot ? oldest_ : slots_[held.older].newer) = held.newer;
  (held.newer == kNoSlot ? newest_ : slots_[held.newer].older) = held.older;
  held.older = held.newer = kNoSlot;
}

void HostTier::LinkNewest(HostSlot slot) {
  slots_[slot].older = newest_;
  (newest_ == kNoSlot ? oldest_ : slots_[newest_].newer) = slot;
  newest_ = slot;
}

void HostTier::CheckIntegrity() const {
  SKEIN_CHECK(size_ <= num_slots() && table_.size() == size_);
  int32_t count = 0;
  HostSlot older = kNoSlot;
  for (HostSlot slot = oldest_; slot != kNoSlot; slot = slots_[slot].newer) {
    SKEIN_CHECK(slot < size_ && ++count <= size_);
    SKEIN_CHECK(slots_[slot].older == older);
    SKEIN_CHECK(table_.Find(slots_[slot].hash) == slot);
    older = slot;
  }
  SKEIN_CHECK(count == size_ && newest_ == older);
}

}  // namespace skein
