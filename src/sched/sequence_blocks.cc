#include "sched/sequence_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace skein {
namespace {

// Tentative snapshots lie this many tokens before the end of a prompt, then kTentativeGrowth times
// as many, and so on. So a prompt that differs from its d-th last token on leaves a snapshot for
// its successors that is at most kTentativeGrowth * d tokens before its end, and a block.
constexpr int32_t kTentativeTokens = 2 * kBlockTokens;
constexpr int32_t kTentativeGrowth = 4;
constexpr int32_t kMaxTentative = 5;

}  // namespace

void SequenceBlocks::Reserve(int64_t num_tokens) {
  hashes_.Reserve(num_tokens);
  blocks_.reserve(BlocksFor(num_tokens));
}

SequenceBlocks::Need SequenceBlocks::NeedOf(const BlockManager& manager,
                                            std::span<const TokenId> tokens,
                                            int32_t max_cached) const {
  SKEIN_CHECK(max_cached >= 0 && max_cached < std::ssize(tokens));
  const BlockManager::Prefix prefix =
      manager.FindPrefix(hashes_, tokens, max_cached / kBlockTokens, nullptr);
  return {
      .num_cached = (prefix.num_blocks + prefix.num_on_host) * kBlockTokens,
      .num_blocks = BlocksFor(std::ssize(tokens)) - prefix.num_blocks + prefix.num_unreferenced};
}

int32_t SequenceBlocks::Hold::NumMissing(const BlockManager& manager, int32_t num_shared,
                                         int32_t num_available) const {
  const int32_t num_missing = std::max(0, num_blocks - num_shared);
  if (!or_fewer) return num_missing;
  const int32_t num_wanted = std::max(num_evicting - num_shared, manager.num_free());
  return std::clamp(std::min(num_wanted, num_available), 0, num_missing);
}

int32_t SequenceBlocks::Attach(BlockManager* manager, std::span<const TokenId> tokens,
                               int32_t max_cached, const Hold& hold, int32_t num_reserved) {
  SKEIN_CHECK(blocks_.empty() && max_cached >= 0 && max_cached < std::ssize(tokens));
  const BlockManager::Prefix prefix =
      manager->FindPrefix(hashes_, tokens, max_cached / kBlockTokens, &blocks_);
  const int32_t num_free = manager->num_available() - prefix.num_unreferenced - num_reserved;
  const int32_t num_missing = hold.NumMissing(*manager, prefix.num_blocks, num_free);
  if (num_missing > num_free && prefix.num_unreferenced + num_missing > 0) {
    blocks_.clear();
    return -1;
  }
  for (const BlockId block : blocks_) manager->Ref(block);
  num_published_ = prefix.num_blocks;
  manager->TouchOnHost(hashes_, tokens, prefix.num_blocks, prefix.num_on_host);
  const int32_t num_cached = prefix.num_blocks + prefix.num_on_host;
  for (int32_t i = 0; i < num_missing; ++i) {
    const auto at = static_cast<int32_t>(blocks_.size());
    blocks_.push_back(manager->Allocate());
    // The blocks that make way for this one may have taken the last of these slots.
    const bool loads = num_published_ == at && at < num_cached;
    if (loads && manager->Load(hashes_, tokens, at, blocks_)) ++num_published_;
  }
  if (manager->states().enabled() && manager->prefix_caching()) {
    if (prefix.num_blocks > 0) {
      const StateId snapshot = manager->states().Find(blocks_[prefix.num_blocks - 1]);
      states_.StartFrom(&manager->states(), snapshot);
    }
    // Another prompt began with the same tokens. This prompt may come again, or be continued.
    if (prefix.num_present > prefix.num_blocks) WantSnapshot(prefix.num_present * kBlockTokens);
    WantSnapshot(max_cached / kBlockTokens * kBlockTokens);
  }
  return num_published_ * kBlockTokens;
}

bool SequenceBlocks::AttachTo(BlockManager* manager, const SequenceBlocks& parent,
                              int32_t prefix_len, const Hold& hold, int32_t num_reserved) {
  SKEIN_CHECK(blocks_.empty());
  const int32_t num_full = prefix_len / kBlockTokens;
  const int32_t num_free = std::max(0, manager->num_available() - num_reserved);
  const int32_t num_own = hold.NumMissing(*manager, num_full, num_free);
  if (num_own > num_free) return false;
  blocks_.assign(parent.blocks_.begin(), parent.blocks_.begin() + num_full);
  for (const BlockId block : blocks_) manager->Ref(block);
  for (int32_t i = 0; i < num_own; ++i) blocks_.push_back(manager->Allocate());
  num_published_ = std::min(parent.num_published_, num_full);
  publishable_ = parent.publishable_;
  if (manager->states().enabled()) {
    states_.StartFrom(&manager->states(), parent.states_.own());
  }
  return true;
}

void SequenceBlocks::Follow(BlockManager* manager, const SequenceBlocks& parent,
                            int32_t prefix_len) {
  for (int32_t i = 0; i < prefix_len / kBlockTokens; ++i) {
    if (blocks_[i] == parent.blocks_[i]) continue;
    manager->Ref(parent.blocks_[i]);
    manager->Unref(blocks_[i]);
    blocks_[i] = parent.blocks_[i];
  }
}

bool SequenceBlocks::Grow(BlockManager* manager, int64_t num_tokens) {
  if (BlocksFor(num_tokens) <= std::ssize(blocks_)) return true;
  const BlockId block = manager->Allocate();
  if (block == kNoBlock) return false;
  blocks_.push_back(block);
  SKEIN_CHECK(BlocksFor(num_tokens) <= std::ssize(blocks_));
  return true;
}

void SequenceBlocks::Publish(BlockManager* manager, std::span<const TokenId> tokens,
                             int64_t num_computed) {
  if (!manager->prefix_caching()) return;
  const auto num_full =
      static_cast<int32_t>(std::min<int64_t>(num_computed / kBlockTokens, std::ssize(blocks_)));
  if (num_full > hashes_.num_blocks()) {
    hashes_.Extend(tokens.first(size_t{kBlockTokens} * num_full));
  }
  while (publishable_ && num_published_ < num_full) {
    publishable_ = manager->Publish(hashes_, tokens, num_published_, blocks_);
    if (publishable_) ++num_published_;
  }
}

bool SequenceBlocks::ForkFrom(BlockManager* manager, SequenceBlocks& parent, int64_t num_computed) {
  SKEIN_CHECK(blocks_.empty());
  StatePool* const pool = &manager->states();
  if (pool->enabled() && !states_.ForkFrom(pool, &parent.states_)) return false;
  const int64_t num_full = num_computed / kBlockTokens;
  if (num_computed % kBlockTokens != 0) {
    const BlockId tail = manager->Allocate();
    if (tail == kNoBlock) {
      if (pool->enabled()) states_.Release(pool);
      return false;
    }
    copy_ = {.from = parent.blocks_[num_full], .to = tail};
    manager->Ref(copy_.from);
  }
  blocks_.assign(parent.blocks_.begin(), parent.blocks_.begin() + num_full);
  for (const BlockId block : blocks_) manager->Ref(block);
  if (has_pending_copy()) blocks_.push_back(copy_.to);
  num_published_ = parent.num_published_;
  publishable_ = parent.publishable_;
  return true;
}

void SequenceBlocks::FinishCopy(BlockManager* manager) {
  if (!has_pending_copy()) return;
  manager->Unref(copy_.from);
  copy_ = {kNoBlock, kNoBlock};
}

void SequenceBlocks::Release(BlockManager* manager) {
  FinishCopy(manager);
  manager->Release(blocks_);
  if (manager->states().enabled()) states_.Release(&manager->states());
  blocks_.clear();
  num_published_ = 0;
  publishable_ = true;
}

bool SequenceBlocks::TakeState(BlockManager* manager) {
  return !manager->states().enabled() || states_.TakeOwn(&manager->states());
}

void SequenceBlocks::AddSnapshot(BlockManager* manager, int32_t num_tokens) {
  if (manager->states().enabled()) states_.AddSnapshot(&manager->states(), num_tokens);
}

void SequenceBlocks::WantSnapshots(int32_t num_tokens, int32_t num_cached, int32_t shared_len) {
  // Snapshots stand at the ends of blocks that are kept.
  const auto want = [&](int32_t at, bool tentative) {
    const int32_t num_blocks = std::min<int32_t>(at / kBlockTokens, std::ssize(blocks_));
    if (num_blocks * kBlockTokens > num_cached) {
      states_.WantSnapshot(num_blocks * kBlockTokens, tentative);
    }
  };
  want(shared_len, false);
  int32_t before_end = kTentativeTokens;
  for (int i = 0; i < kMaxTentative && before_end < num_tokens - num_cached; ++i) {
    want(num_tokens - before_end, true);
    before_end *= kTentativeGrowth;
  }
}

void SequenceBlocks::KeepEnd(BlockManager* manager, int32_t num_computed,
                             SequenceStates::NextRow next) {
  const int32_t num_blocks = num_computed / kBlockTokens;
  if (!manager->states().enabled() || num_computed % kBlockTokens != 0) return;
  if (num_blocks == 0 || num_blocks > num_published_) return;
  states_.KeepEnd(&manager->states(), blocks_[num_blocks - 1], next);
}

bool SequenceBlocks::BeginRow(BlockManager* manager, int32_t begin, int32_t num_tokens,
                              bool keeps_state) {
  if (!manager->states().enabled()) return true;
  if (keeps_state && !TakeState(manager)) return false;
  states_.BeginRow(&manager->states(), begin, num_tokens);
  return true;
}

void SequenceBlocks::FinishRow(BlockManager* manager) {
  if (!manager->states().enabled()) return;
  states_.FinishRow(&manager->states(), std::span(blocks_).first(num_published_));
}

void SequenceBlocks::CancelRow(BlockManager* manager) {
  if (manager->states().enabled()) states_.CancelRow(&manager->states());
}

bool SequenceBlocks::AbandonRow(BlockManager* manager) {
  return !manager->states().enabled() || states_.AbandonRow(&manager->states());
}

void SequenceBlocks::CountReferences(std::span<int32_t> counts) const {
  for (const BlockId block : blocks_) ++counts[block];
  if (has_pending_copy()) ++counts[copy_.from];
}

}  // namespace skein
