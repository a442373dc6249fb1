#include "sched/order/client_backlog.h"

#include "base/check.h"

namespace skein {

int64_t ClientBacklog::Enter(const Request& request, int64_t num_tokens) {
  num_tokens_ += num_tokens;
  ++num_prompts_;
  const std::optional<Client> client = ClientOf(request);
  return client ? ++num_of_client_[*client] : 1;
}

void ClientBacklog::Leave(const Request& request, int64_t num_tokens) {
  num_tokens_ -= num_tokens;
  --num_prompts_;
  const std::optional<Client> client = ClientOf(request);
  if (!client) return;
  const auto found = num_of_client_.find(*client);
  SKEIN_CHECK(found != num_of_client_.end());
  if (--found->second == 0) num_of_client_.erase(found);
}

}  // namespace skein
