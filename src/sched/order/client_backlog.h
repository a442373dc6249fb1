#pragma once

#include <cstdint>
#include <map>

#include "sched/order/client.h"
#include "skein/request.h"

namespace skein {

// The prompts that are not computed yet: the sum of their tokens, and their number for each client.
// Not thread-safe. O(log clients).
class ClientBacklog {
 public:
  // Returns the number of the client's prompts, including this one.
  int64_t Enter(const Request& request, int64_t num_tokens);
  // A prompt of `num_tokens` has been computed or given up.
  void Leave(const Request& request, int64_t num_tokens);

  int64_t num_tokens() const { return num_tokens_; }
  bool empty() const { return num_prompts_ == 0; }

 private:
  std::map<Client, int64_t> num_of_client_;  // clients without prompts are left out
  int64_t num_tokens_ = 0;
  int64_t num_prompts_ = 0;
};

}  // namespace skein
