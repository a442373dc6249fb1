// The part of Scheduler's planning that shares prefixes: trunks, and waiting for a leader.

#include <algorithm>

#include "base/check.h"
#include "sched/prefix/family.h"
#include "sched/scheduler.h"

namespace skein {
namespace {

// Requests considered for one trunk: of the head's group, and of the others.
constexpr size_t kMaxFamily = 4096;

// Waiting for a leader must save this many tokens for each token that the leader still computes:
// what a step costs grows with its tokens, and the leader's would be computed in any case.
constexpr double kMinSavedPerTokenWaited = 0.5;

// Heads that wait for a prefix in one round; further ones compute it themselves.
constexpr size_t kMaxDeferred = 256;

}  // namespace

// Puts `head` under a trunk that is there already and whose prefix is longer than what is cached.
void Scheduler::JoinTrunk(Sequence* head) {
  const PrefixHashes& hashes = head->blocks.hashes();
  for (const auto& trunk : trunks_) {
    const PrefixHashes& others = trunk->blocks.hashes();
    const int32_t num_full = others.num_blocks();
    if (head->max_cached_tokens() < trunk->length() || !(others.scope() == hashes.scope()) ||
        (num_full > 0 && others[num_full - 1] != hashes[num_full - 1]) ||
        !std::ranges::equal(trunk->tokens, std::span(head->tokens).first(trunk->length())) ||
        NeedOf(*head).num_cached >= trunk->length()) {
      continue;
    }
    return Join(head, trunk.get());
  }
}

// The row of this step that computes the first missing block of `head`, of which so many tokens are
// cached, where it is worth waiting for; null if there is none.
const StepRow* Scheduler::LeaderOf(const Sequence& head, int32_t num_cached) const {
  if (step_.prefills.empty() || !blocks_.prefix_caching()) return nullptr;
  const PrefixHashes& hashes = head.blocks.hashes();
  const int32_t missing = num_cached / kBlockTokens;
  if (missing >= hashes.num_blocks()) return nullptr;
  for (const StepRow& leader : step_.prefills) {
    const PrefixHashes& others = leader.blocks().hashes();
    if (leader.begin() / kBlockTokens == missing && missing < others.num_blocks() &&
        others[missing] == hashes[missing] && WorthWaiting(leader, head, num_cached)) {
      return &leader;
    }
  }
  return nullptr;
}

// Whether `head` is to wait for a row of this step that computes its first missing block.
bool Scheduler::WaitsForPrefix(Sequence* head, TimeUs now_us) {
  if (config_.max_prefix_wait_us == 0 || deferred_.size() == kMaxDeferred) return false;
  const StepRow* leader = LeaderOf(*head, NeedOf(*head).num_cached);
  if (leader == nullptr) return false;
  TimeUs& since_us = head->request->waits_for_prefix_since_us;
  if (since_us < 0) {
    since_us = now_us;
    ++stats_.prefix_waits;
  }
  if (now_us - since_us >= config_.max_prefix_wait_us) return false;
  if (leader->sequence != nullptr) Inherit(leader->sequence, *head);
  return true;
}

bool Scheduler::WorthWaiting(const StepRow& leader, const Sequence& head,
                             int32_t num_cached) const {
  // Only full blocks are published.
  const int32_t num_held = static_cast<int32_t>(leader.blocks().table().size()) * kBlockTokens;
  const int32_t common = std::min(
      SharedLength(leader.tokens(), head.shareable()) / kBlockTokens * kBlockTokens, num_held);
  const int32_t num_saved = common - num_cached;
  const int32_t num_waited = std::max(leader.num_tokens, common - leader.begin());
  return num_saved > kMinSavedPerTokenWaited * num_waited;
}

// A leader is as urgent as the most urgent request that waits for it.
void Scheduler::Inherit(Sequence* leader, const Sequence& peer) {
  RequestRecord* request = leader->request;
  if (request->forked || peer.request->urgency >= request->urgency) return;
  running_.erase(std::ranges::find(running_, leader));
  request->urgency = peer.request->urgency;
  request->deadline_us = std::min(request->deadline_us, peer.request->deadline_us);
  InsertRunning(leader);
}

// Puts `head` and those who share the most with it under a trunk, if that saves anything and there
// are blocks for it and for the head.
void Scheduler::FormTrunk(Sequence* head) {
  std::vector<Sequence*> peers;
  watch_.Find(*head, kMaxFamily, &peers);
  const PrefixScope& scope = head->blocks.hashes().scope();
  std::ranges::sort(peers, {}, &Sequence::key);
  const auto repeated = std::ranges::unique(peers);
  peers.erase(repeated.begin(), repeated.end());
  std::erase_if(peers,
                [&](const Sequence* peer) { return !(peer->blocks.hashes().scope() == scope); });
  if (peers.empty()) return;
  std::vector<FamilyCandidate> candidates;
  const uint64_t own_group = head->request->request.group.id;
  for (const Sequence* peer : peers) {
    const GroupSpec& group = peer->request->request.group;
    const bool other = group.id != 0 && group.id != own_group;
    candidates.push_back({peer->shareable(), other ? group.parent_prefix_len : 0});
  }
  const int32_t num_cached = NeedOf(*head).num_cached;
  const Family family = ChooseFamily(head->shareable(), candidates, num_cached);
  if (family.prefix_len == 0) return;

  auto trunk = std::make_unique<Trunk>(scope);
  trunk->tokens.assign(head->tokens.begin(), head->tokens.begin() + family.prefix_len);
  trunk->blocks.Hash(trunk->tokens);
  const int32_t num_blocks = DiscardsKv(*head) ? 0 : BlocksFor(std::ssize(head->tokens));
  const int32_t own_blocks = std::max(0, num_blocks - family.prefix_len / kBlockTokens);
  trunk->num_cached =
      trunk->blocks.Attach(&blocks_, trunk->tokens, family.prefix_len - 1,
                           {BlocksFor(family.prefix_len)}, DecodeReserve() + own_blocks);
  if (trunk->num_cached < 0) return;
  trunk->num_computed = trunk->num_cached;
  trunk->id = MakeSequenceId(next_trunk_++, 0);
  Join(head, trunk.get());
  for (const int32_t member : family.members) Join(peers[member], trunk.get());
  trunks_.push_back(std::move(trunk));
  ++stats_.shared_prefixes;
}

// Plans as much of the trunk as the step has room for. True if members may follow.
bool Scheduler::PlanTrunk(Trunk* trunk) {
  if (trunk->ready()) return true;
  const int32_t num_left = trunk->length() - trunk->num_computed;
  const int32_t num_tokens = std::min(num_left, tokens_left_);
  if (trunk->num_planned > 0 || num_tokens == 0) return false;
  const bool split = num_tokens < num_left;
  if (config_.sharing != Sharing::kChunked && split && !step_.prefills.empty()) return false;
  trunk->in_step = true;
  trunk->num_planned = num_tokens;
  tokens_left_ -= num_tokens;
  step_.prefills.push_back({.num_tokens = num_tokens, .trunk = trunk});
  return trunk->ready();
}

void Scheduler::CompleteTrunk(const StepRow& row) {
  Trunk* trunk = row.trunk;
  trunk->num_computed += row.num_tokens;
  trunk->num_planned = 0;
  trunk->blocks.Publish(&blocks_, trunk->tokens, trunk->num_computed);
}

void Scheduler::Join(Sequence* sequence, Trunk* trunk) {
  SKEIN_CHECK(sequence->trunk == nullptr && sequence->blocks.table().empty());
  watch_.Erase(sequence);
  sequence->trunk = trunk;
  sequence->trunk_place = trunk->members.size();
  trunk->members.push_back(sequence);
}

// Takes the sequence, if it hangs under a trunk, off it; a trunk without members goes.
void Scheduler::LeaveTrunk(Sequence* sequence) {
  Trunk* trunk = sequence->trunk;
  if (trunk == nullptr) return;
  sequence->trunk = nullptr;
  Sequence* last = trunk->members.back();
  trunk->members[sequence->trunk_place] = last;
  last->trunk_place = sequence->trunk_place;
  trunk->members.pop_back();
  trunk->num_admitted -= sequence->on_trunk;
  sequence->on_trunk = false;
  if (trunk->members.empty() && !trunk->in_step) SweepTrunks();
}

void Scheduler::SweepTrunks() {
  std::erase_if(trunks_, [this](const std::unique_ptr<Trunk>& trunk) {
    if (trunk->in_step || !trunk->members.empty()) return false;
    trunk->blocks.Release(&blocks_);
    return true;
  });
}

// Gives up the youngest trunk but `except` on which nothing of this step depends.
bool Scheduler::ReclaimTrunk(const Trunk* except) {
  for (auto trunk = trunks_.rbegin(); trunk != trunks_.rend(); ++trunk) {
    if (trunk->get() == except || (*trunk)->in_step || (*trunk)->num_admitted > 0) continue;
    GiveUpTrunk(trunk->get());
    return true;
  }
  return false;
}

void Scheduler::GiveUpTrunk(Trunk* trunk) {
  trunk->blocks.Release(&blocks_);
  while (!trunk->members.empty()) {
    Sequence* member = trunk->members.back();
    const bool last = trunk->members.size() == 1;
    LeaveTrunk(member);
    Relocate(member, planned_us_);  // by what is cached now: it was not watched meanwhile
    if (last) return;               // the trunk is gone
  }
}

}  // namespace skein
