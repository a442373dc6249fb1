#include "sched/order/fair_queue.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

int64_t FairQueue::Enter(const Request& request, int64_t cost) {
  const std::optional<Client> client = ClientOf(request);
  if (!client) {
    ++num_alone_;
    return now_;
  }
  Account& account = accounts_[*client];
  ++account.num_requests;
  const uint64_t group = request.group.id;
  if (group != 0 && account.group == group && account.finish - account.group_start < kGroupTokens) {
    account.finish += cost;
    return account.group_start;
  }
  const int64_t start = std::max(now_, account.finish);
  account.finish = start + cost;
  account.group = group;
  account.group_start = start;
  return start;
}

void FairQueue::Serve(int64_t start, int64_t cost) {
  now_ = std::max(now_ + cost / std::max<int64_t>(num_clients(), 1), start);
}

void FairQueue::Leave(const Request& request, int64_t unserved) {
  const std::optional<Client> client = ClientOf(request);
  if (!client) {
    --num_alone_;
    return;
  }
  const auto found = accounts_.find(*client);
  SKEIN_CHECK(found != accounts_.end());
  found->second.finish -= unserved;
  if (--found->second.num_requests == 0) accounts_.erase(found);
}

}  // namespace skein
