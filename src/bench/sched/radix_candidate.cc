#include "bench/sched/radix_candidate.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "bench/sched/radix_tree.h"

namespace skein {
namespace {

using TokenSpan = std::span<const int32_t>;

int32_t CommonTokens(TokenSpan a, TokenSpan b) {
  return static_cast<int32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

auto KeyOf(const RadixCandidate& candidate, const ChunkedHashTree::Rank& rank) {
  const int32_t lost = std::max(0, candidate.shared_before - candidate.shared_after);
  return std::tuple(rank.priority, lost, candidate.num_missing, rank);
}

}  // namespace

std::optional<RadixCandidate> FindRadixCandidate(std::span<const TokenSpan> active,
                                                 std::span<const RadixPrompt> waiting) {
  RadixTree tree;
  int32_t tip = active.empty() ? 0 : std::numeric_limits<int32_t>::max();
  for (const TokenSpan prompt : active) {
    tree.Insert(prompt);
    tip = std::min(tip, CommonTokens(prompt, active.front()));
  }
  std::optional<RadixCandidate> best;
  for (int32_t i = 0; i < std::ssize(waiting); ++i) {
    const TokenSpan tokens = waiting[i].tokens;
    const auto length = static_cast<int32_t>(tokens.size());
    RadixCandidate one = {.index = i,
                          .num_missing = length - tree.Match(tokens).num_tokens,
                          .shared_before = tip,
                          .shared_after = length};
    if (!active.empty()) {
      one.shared_after = CommonTokens(tokens, active.front().first(static_cast<size_t>(tip)));
    }
    if (!best || KeyOf(one, waiting[i].rank) < KeyOf(*best, waiting[best->index].rank)) best = one;
  }
  return best;
}

int32_t CountRadixPeers(std::span<const RadixPrompt> waiting, int32_t index, int32_t num_tokens) {
  const TokenSpan prefix = waiting[index].tokens.first(static_cast<size_t>(num_tokens));
  int32_t num_peers = -1;  // the request itself does not count
  for (const RadixPrompt& one : waiting) {
    num_peers += CommonTokens(one.tokens, prefix) == num_tokens;
  }
  return num_peers;
}

}  // namespace skein
