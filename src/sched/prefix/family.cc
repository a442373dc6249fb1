#include "sched/prefix/family.h"

#include <algorithm>

#include "kv/block_pool.h"

namespace skein {
namespace {

// A family that saves fewer tokens is not worth a row of its own.
constexpr int64_t kMinSavedTokens = 16;

struct Member {
  int32_t index = 0;
  int32_t shared_len = 0;
};

// Leaves out candidates that diverge from the head at the same token and then share at least one
// more block. These are neighbours in the order of their remaining tokens.
void LeaveOutOtherFamilies(std::span<const FamilyCandidate> candidates,
                           std::vector<Member>* members) {
  const auto behind = [&](const Member& member) {
    return candidates[member.index].tokens.subspan(member.shared_len);
  };
  std::ranges::sort(*members, [&](const Member& a, const Member& b) {
    if (a.shared_len != b.shared_len) return a.shared_len > b.shared_len;
    const auto own = std::lexicographical_compare_three_way(behind(a).begin(), behind(a).end(),
                                                            behind(b).begin(), behind(b).end());
    return own != 0 ? own < 0 : a.index < b.index;
  });
  std::vector<bool> elsewhere(members->size());
  for (size_t i = 1; i < members->size(); ++i) {
    const Member& a = (*members)[i - 1];
    const Member& b = (*members)[i];
    if (a.shared_len != b.shared_len) continue;
    if (SharedLength(behind(a), behind(b)) < kBlockTokens) continue;
    elsewhere[i - 1] = elsewhere[i] = true;
  }
  size_t i = 0;
  std::erase_if(*members, [&](const Member&) { return elsewhere[i++]; });
}

}  // namespace

int32_t SharedLength(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t longest = std::min(a.size(), b.size());
  if (longest == 0) return 0;
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(longest - 1);
  return static_cast<int32_t>(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
}

Family ChooseFamily(std::span<const TokenId> head, std::span<const FamilyCandidate> candidates,
                    int32_t num_cached) {
  std::vector<Member> members;
  for (int32_t i = 0; i < std::ssize(candidates); ++i) {
    const int32_t shared_len = SharedLength(head, candidates[i].tokens);
    if (shared_len <= num_cached || candidates[i].other_prefix_len > shared_len) continue;
    members.push_back({i, shared_len});
  }
  LeaveOutOtherFamilies(candidates, &members);
  int64_t best = kMinSavedTokens - 1;
  int64_t count = 0;
  for (int64_t n = 1; n <= std::ssize(members); ++n) {
    const int64_t saved = n * (members[n - 1].shared_len - num_cached);
    if (saved <= best) continue;
    best = saved;
    count = n;
  }
  Family family;
  if (count == 0) return family;
  family.prefix_len = members[count - 1].shared_len;
  for (int64_t i = 0; i < count; ++i) family.members.push_back(members[i].index);
  std::ranges::sort(family.members);
  return family;
}

}  // namespace skein
