#pragma once

#include <cstdint>
#include <map>

#include "sched/order/client.h"
#include "skein/request.h"

namespace skein {

// Fair queueing by start tags between clients: a client is Request::user, else the group, else the
// request alone. A request's tag is the virtual time at which its client's share of the service
// reaches the request:
//
//   start = max(virtual time now, the client's finish);  the client's finish = start + cost
//
// Requests of one group share a tag, up to kGroupTokens: they are the reads for one request of the
// server, and its answer needs all of them. Without shared tags, the second question of each
// decision would wait behind the first question of all other decisions. If a client has a thousand
// requests, their tags thus lie in the future, one behind the other. A single request of another
// client goes before nearly all of them. The virtual time is the service that each client would
// have had by now in equal shares (as in Bennett and Zhang's WF2Q+, 1996). It advances by
// cost / clients with each request served, and at least to its tag. New clients therefore do not
// starve old ones. Tags never change, so an order by tags needs no new keys. A client's account
// lives as long as it has requests. Not thread-safe. O(log clients).
class FairQueue {
 public:
  // Further members of a group get a new tag when the group has this cost. Otherwise, a group of
  // any length would hold up every other client.
  static constexpr int64_t kGroupTokens = 2048;

  // Returns the start tag of a new request with `cost` tokens to compute.
  int64_t Enter(const Request& request, int64_t cost);
  // A request with tag `start` is given `cost` tokens.
  void Serve(int64_t start, int64_t cost);
  // A request that entered is finished; `unserved` tokens of its cost were never computed.
  void Leave(const Request& request, int64_t unserved);

  int64_t num_clients() const { return std::ssize(accounts_) + num_alone_; }

 private:
  struct Account {
    int64_t finish = 0;
    int64_t num_requests = 0;
    uint64_t group = 0;  // the group of the latest request; 0: none
    int64_t group_start = 0;
  };

  std::map<Client, Account> accounts_;
  int64_t num_alone_ = 0;  // requests that are clients of their own
  int64_t now_ = 0;
};

}  // namespace skein
