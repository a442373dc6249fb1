#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "skein/request.h"

namespace skein {

// The prompts that are not computed yet: their tokens in all, and their number for each client. A
// client is Request::user; a request without one is a client of its own. Not thread-safe. O(log
// clients).
class ClientBacklog {
 public:
  // Returns the number of the client's prompts, this one included. Members of a group are reads of
  // one request of the server, so they share the number of the group's first.
  int64_t Enter(const Request& request, int64_t num_tokens);
  // A prompt of `num_tokens` has been computed or given up.
  void Leave(const Request& request, int64_t num_tokens);

  int64_t num_tokens() const { return num_tokens_; }
  bool empty() const { return num_prompts_ == 0; }

 private:
  struct Account {
    int64_t num_prompts = 0;
    uint64_t group = 0;  // of the latest request; 0: none
    int64_t group_number = 0;
  };

  std::map<std::string, Account> accounts_;  // of the users with prompts
  int64_t num_tokens_ = 0;
  int64_t num_prompts_ = 0;
};

}  // namespace skein
