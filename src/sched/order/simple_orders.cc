#include "sched/order/simple_orders.h"

#include <algorithm>

namespace skein {

Ranking FairOrder::RankArrival(const OrderView& view, TimeUs /*now_us*/) {
  int32_t num_shared = view.num_cached;
  const GroupSpec& group = view.request.group;
  if (group.id != 0 && group.id == last_group_) {
    num_shared = std::max(num_shared, group.parent_prefix_len);
  }
  last_group_ = group.id;
  const int64_t cost = std::max(1, view.prompt_len - num_shared);
  return {.rank = queue_.Enter(view.request, cost), .num_charged = cost};
}

}  // namespace skein
