#include "sched/order/client_backlog.h"

#include "base/check.h"

namespace skein {

int64_t ClientBacklog::Enter(const Request& request, int64_t num_tokens) {
  num_tokens_ += num_tokens;
  ++num_prompts_;
  if (request.user.empty()) return 1;
  Account& account = accounts_[request.user];
  ++account.num_prompts;
  const uint64_t group = request.group.id;
  if (group == 0 || group != account.group) {
    account.group = group;
    account.group_number = account.num_prompts;
  }
  return account.group_number;
}

void ClientBacklog::Leave(const Request& request, int64_t num_tokens) {
  num_tokens_ -= num_tokens;
  --num_prompts_;
  if (request.user.empty()) return;
  const auto found = accounts_.find(request.user);
  SKEIN_CHECK(found != accounts_.end());
  if (--found->second.num_prompts == 0) accounts_.erase(found);
}

}  // namespace skein
