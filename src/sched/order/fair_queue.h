#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "skein/request.h"

namespace skein {

// Fair queueing by start tags between clients: a client is Request::user, else the group, else the
// request alone. A request's tag is the virtual time at which its client's share begins to pay for
// it:
//
//   start = max(virtual time now, the client's finish);  the client's finish = start + cost
//
// So the tags of one client's thousand requests lie in the future, one behind the other, and
// another client's single request goes before nearly all of them. The virtual time is what each
// client has been given so far were all served equally (as in Bennett and Zhang's WF2Q+, 1996): it
// advances by cost / clients with each request served, and to its tag at least. So new clients do
// not starve old ones. Tags never change: whoever orders by them needs no re-keying. A client's
// account lives as long as it has requests. Not thread-safe. O(log clients).
class FairQueue {
 public:
  // The start tag of a new request of `cost` tokens to compute.
  int64_t Enter(const Request& request, int64_t cost);
  // A request with that tag is given so many tokens.
  void Serve(int64_t start, int64_t cost);
  // The request, which entered, is finished; `unserved` of its cost was never asked for.
  void Leave(const Request& request, int64_t unserved);

  int64_t num_clients() const { return std::ssize(accounts_) + num_alone_; }

 private:
  using Client = std::pair<std::string, uint64_t>;
  struct Account {
    int64_t finish = 0;
    int64_t num_requests = 0;
  };

  std::map<Client, Account> accounts_;
  int64_t num_alone_ = 0;  // requests that are clients of their own
  int64_t now_ = 0;
};

}  // namespace skein
