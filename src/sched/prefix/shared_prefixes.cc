#include "sched/prefix/shared_prefixes.h"

#include <algorithm>

#include "base/check.h"
#include "sched/prefix/family.h"

namespace skein {
namespace {

// The most requests that are considered for one prefix: of the head's group, and of the others.
constexpr size_t kMaxPeers = 4096;

}  // namespace

SharedPrefixes::SharedPrefixes(const SchedulerContext& context, Ranks* ranks)
    : blocks_(context.blocks), table_(context.table), stats_(context.stats), ranks_(ranks) {}

void SharedPrefixes::JoinExisting(Sequence* head) {
  const PrefixHashes& hashes = head->blocks.hashes();
  for (const auto& prefix : prefixes_) {
    const PrefixHashes& others = prefix->blocks.hashes();
    const int32_t num_full = others.num_blocks();
    if (head->max_cached_tokens() < prefix->length() || !(others.scope() == hashes.scope()) ||
        (num_full > 0 && others[num_full - 1] != hashes[num_full - 1]) ||
        !std::ranges::equal(prefix->tokens, std::span(head->tokens).first(prefix->length())) ||
        head->NeedOf(*blocks_).num_cached >= prefix->length()) {
      continue;
    }
    return Join(head, prefix.get());
  }
}

// The sequences that may share a prefix with `head`, by key.
std::vector<Sequence*> SharedPrefixes::FindPeers(const Sequence& head) {
  std::vector<Sequence*> peers;
  ranks_->watch().Find(head, kMaxPeers, &peers);
  const PrefixScope& scope = head.blocks.hashes().scope();
  std::ranges::sort(peers, {}, &Sequence::key);
  const auto repeated = std::ranges::unique(peers);
  peers.erase(repeated.begin(), repeated.end());
  std::erase_if(peers,
                [&](const Sequence* peer) { return !(peer->blocks.hashes().scope() == scope); });
  return peers;
}

void SharedPrefixes::Form(Sequence* head, int32_t num_blocks,
                          const std::function<int32_t()>& reserve) {
  const std::vector<Sequence*> peers = FindPeers(*head);
  if (peers.empty()) return;
  std::vector<FamilyCandidate> candidates;
  const uint64_t own_group = head->request->request.group.id;
  for (const Sequence* peer : peers) {
    const GroupSpec& group = peer->request->request.group;
    const bool other = group.id != 0 && group.id != own_group;
    candidates.push_back({peer->shareable(), other ? group.parent_prefix_len : 0});
  }
  const int32_t num_cached = head->NeedOf(*blocks_).num_cached;
  const Family family = ChooseFamily(head->shareable(), candidates, num_cached);
  if (family.prefix_len == 0) return;

  auto prefix = std::make_unique<SharedPrefix>(head->blocks.hashes().scope());
  prefix->tokens.assign(head->tokens.begin(), head->tokens.begin() + family.prefix_len);
  prefix->blocks.Hash(prefix->tokens);
  const int32_t own_blocks = std::max(0, num_blocks - family.prefix_len / kBlockTokens);
  prefix->num_cached =
      prefix->blocks.Attach(blocks_, prefix->tokens, family.prefix_len - 1,
                            {BlocksFor(family.prefix_len)}, reserve() + own_blocks);
  if (prefix->num_cached < 0) return;
  prefix->blocks.WantSnapshot(family.prefix_len / kBlockTokens * kBlockTokens);
  prefix->num_computed = prefix->num_cached;
  prefix->id = MakeSequenceId(next_id_++, 0);
  Join(head, prefix.get());
  for (const int32_t member : family.members) Join(peers[member], prefix.get());
  prefixes_.push_back(std::move(prefix));
  ++stats_->shared_prefixes;
}

bool SharedPrefixes::Attach(Sequence* sequence, const SequenceBlocks::Hold& hold,
                            int32_t num_reserved) {
  SharedPrefix* prefix = sequence->shared_prefix;
  if (!sequence->blocks.AttachTo(blocks_, prefix->blocks, prefix->length(), hold, num_reserved)) {
    return false;
  }
  sequence->num_computed = prefix->length();
  sequence->holds_shared_prefix = true;
  prefix->in_step = true;
  ++prefix->num_admitted;
  stats_->shared_prefix_tokens += prefix->length() - prefix->num_cached;
  return true;
}

void SharedPrefixes::Join(Sequence* sequence, SharedPrefix* prefix) {
  SKEIN_CHECK(sequence->shared_prefix == nullptr && sequence->blocks.table().empty());
  ranks_->watch().Erase(sequence);
  sequence->shared_prefix = prefix;
  sequence->shared_prefix_index = prefix->members.size();
  prefix->members.push_back(sequence);
}

void SharedPrefixes::Leave(Sequence* sequence) {
  SharedPrefix* prefix = sequence->shared_prefix;
  if (prefix == nullptr) return;
  sequence->shared_prefix = nullptr;
  Sequence* last = prefix->members.back();
  prefix->members[sequence->shared_prefix_index] = last;
  last->shared_prefix_index = sequence->shared_prefix_index;
  prefix->members.pop_back();
  prefix->num_admitted -= sequence->holds_shared_prefix;
  sequence->holds_shared_prefix = false;
  if (prefix->members.empty() && !prefix->in_step) Sweep();
}

bool SharedPrefixes::BeginRow(SharedPrefix* prefix, int32_t num_tokens) {
  return prefix->blocks.BeginRow(blocks_, prefix->num_computed, num_tokens, true);
}

void SharedPrefixes::Complete(const StepRow& row, TimeUs now_us) {
  SharedPrefix* prefix = row.prefix;
  prefix->num_computed += row.num_tokens;
  prefix->num_planned = 0;
  prefix->blocks.Publish(blocks_, prefix->tokens, prefix->num_computed);
  prefix->blocks.FinishRow(blocks_);
  // Members start from the state at the prefix's end, so that state does not move.
  if (!prefix->ready()) {
    prefix->blocks.KeepEnd(blocks_, prefix->num_computed, SequenceStates::NextRow::kChunk);
  }
  // A block that was in the cache already takes the place of the computed one, also for members:
  // they never hold a block without the one that the cache has before it.
  for (Sequence* member : prefix->members) {
    if (member->holds_shared_prefix) {
      member->blocks.Follow(blocks_, prefix->blocks, prefix->length());
    }
    ranks_->FollowPrefix(member, prefix->num_computed, now_us);
  }
}

void SharedPrefixes::Mark(std::span<const Step> suspended, std::span<const StepRow> current) {
  if (prefixes_.empty()) return;
  for (const auto& prefix : prefixes_) prefix->in_step = prefix->suspended = false;
  const auto mark = [](std::span<const StepRow> rows, bool in_suspended) {
    for (const StepRow& row : rows) {
      SharedPrefix* prefix = row.prefix != nullptr ? row.prefix : row.sequence->shared_prefix;
      if (prefix == nullptr) continue;
      prefix->in_step = true;
      prefix->suspended = prefix->suspended || (in_suspended && row.prefix != nullptr);
    }
  };
  for (const Step& step : suspended) mark(step.prefills, true);
  mark(current, false);
}

void SharedPrefixes::Sweep() {
  std::erase_if(prefixes_, [this](const std::unique_ptr<SharedPrefix>& prefix) {
    if (prefix->in_step || !prefix->members.empty()) return false;
    prefix->blocks.Release(blocks_);
    return true;
  });
}

bool SharedPrefixes::Reclaim(const SharedPrefix* except) {
  for (auto prefix = prefixes_.rbegin(); prefix != prefixes_.rend(); ++prefix) {
    if (prefix->get() == except || !IsReclaimable(**prefix)) continue;
    GiveUp(prefix->get());
    return true;
  }
  return false;
}

void SharedPrefixes::Abandon(SharedPrefix* prefix) {
  const auto is_it = [prefix](const std::unique_ptr<SharedPrefix>& p) { return p.get() == prefix; };
  if (std::ranges::none_of(prefixes_, is_it)) return;  // it was deleted with its last member
  if (!prefix->blocks.AbandonRow(blocks_)) GiveUp(prefix);
}

void SharedPrefixes::GiveUp(SharedPrefix* prefix) {
  prefix->blocks.Release(blocks_);
  while (!prefix->members.empty()) {
    Sequence* member = prefix->members.back();
    const bool last = prefix->members.size() == 1;
    Leave(member);
    ranks_->RelocateInRound(member);  // by its present cached share: members are not watched
    if (last) return;                 // the prefix has been deleted
  }
}

int32_t SharedPrefixes::NumBlocks() const {
  int32_t num_blocks = 0;
  for (const auto& prefix : prefixes_) {
    num_blocks += static_cast<int32_t>(prefix->blocks.table().size());
  }
  return num_blocks;
}

int32_t SharedPrefixes::NumReclaimableBlocks() const {
  int32_t num_blocks = 0;
  for (const auto& prefix : prefixes_) {
    if (IsReclaimable(*prefix)) num_blocks += static_cast<int32_t>(prefix->blocks.table().size());
  }
  return num_blocks;
}

void SharedPrefixes::CountStates(std::span<int32_t> counts) const {
  for (const auto& prefix : prefixes_) prefix->blocks.CountStates(counts);
}

void SharedPrefixes::CountReferences(std::span<int32_t> counts) const {
  for (const auto& prefix : prefixes_) prefix->blocks.CountReferences(counts);
}

void SharedPrefixes::CheckIntegrity() const {
  size_t num_members = 0;
  for (const auto& [id, request] : table_->requests()) {
    for (const auto& sequence : request->sequences) {
      num_members += sequence->shared_prefix != nullptr;
    }
  }
  for (const auto& prefix : prefixes_) {
    num_members -= prefix->members.size();
    for (size_t i = 0; i < prefix->members.size(); ++i) {
      const Sequence& member = *prefix->members[i];
      SKEIN_CHECK(member.shared_prefix == prefix.get() && member.shared_prefix_index == i);
    }
    SKEIN_CHECK(prefix->in_step || !prefix->members.empty());
    SKEIN_CHECK(prefix->num_admitted ==
                std::ranges::count_if(prefix->members, &Sequence::holds_shared_prefix));
  }
  SKEIN_CHECK(num_members == 0);
}

}  // namespace skein
