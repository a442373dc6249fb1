#pragma once

#include "sched/order/fair_queue.h"
#include "sched/order/order_policy.h"

namespace skein {

// First come, first served.
class FcfsOrder final : public OrderPolicy {
 public:
  bool InLine() const override { return true; }
  Ranking RankArrival(const OrderView& /*view*/, TimeUs /*now_us*/) override { return {}; }
};

// Start-time fair queueing between clients (sched/order/fair_queue.h). A request is charged for the
// tokens that no other request has computed for it. The members of a group, except the first, are
// charged for their own tokens only.
class FairOrder final : public OrderPolicy {
 public:
  Ranking RankArrival(const OrderView& view, TimeUs now_us) override;
  bool LooksAtCache() const override { return true; }
  void OnAdmit(int64_t rank, int64_t num_tokens) override { queue_.Serve(rank, num_tokens); }
  void OnEnd(const Request& request, int64_t num_unserved, const OrderMemo& /*memo*/) override {
    queue_.Leave(request, num_unserved);
  }

 private:
  FairQueue queue_;
  uint64_t last_group_ = 0;  // of the latest arrival
};

// SGLang's cache-aware orders, over full KV blocks. bench/sched/radix_orders.h has the original
// orders over tokens. This one: the longest cached prefix first.
class LongestPrefixOrder final : public OrderPolicy {
 public:
  Ranking RankArrival(const OrderView& view, TimeUs /*now_us*/) override {
    return {.rank = -view.num_cached};
  }
  std::optional<Ranking> Rerank(const OrderView& view, TimeUs /*now_us*/) const override {
    return Ranking{.rank = -view.num_cached};
  }
  bool FollowsCache() const override { return true; }
};

// Depth first over the tree of cached prefixes, the heaviest branch first.
class DepthFirstOrder final : public OrderPolicy {
 public:
  Ranking RankArrival(const OrderView& /*view*/, TimeUs /*now_us*/) override { return {}; }
  bool RanksEachRound() const override { return true; }
  void RankRound(std::span<CachedPath> paths) const override { RankDepthFirst(paths); }
};

}  // namespace skein
