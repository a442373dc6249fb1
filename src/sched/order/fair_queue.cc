#include "sched/order/fair_queue.h"

#include <algorithm>

#include "base/check.h"

namespace skein {
namespace {

// A request without user and group is a client of its own and needs no account.
bool HasAccount(const Request& request) { return !request.user.empty() || request.group.id != 0; }

std::pair<std::string, uint64_t> ClientOf(const Request& request) {
  return {request.user, request.user.empty() ? request.group.id : 0};
}

}  // namespace

int64_t FairQueue::Enter(const Request& request, int64_t cost) {
  if (!HasAccount(request)) {
    ++num_alone_;
    return now_;
  }
  Account& account = accounts_[ClientOf(request)];
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
  if (!HasAccount(request)) {
    --num_alone_;
    return;
  }
  const auto found = accounts_.find(ClientOf(request));
  SKEIN_CHECK(found != accounts_.end());
  found->second.finish -= unserved;
  if (--found->second.num_requests == 0) accounts_.erase(found);
}

}  // namespace skein
