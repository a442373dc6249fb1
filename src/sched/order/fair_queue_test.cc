#include "sched/order/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace skein {
namespace {

Request From(const std::string& user, uint64_t group = 0) {
  Request request;
  request.user = user;
  request.group.id = group;
  return request;
}

TEST(FairQueue, OneClientsRequestsLineUp) {
  FairQueue queue;
  EXPECT_EQ(queue.Enter(From("a"), 100), 0);
  EXPECT_EQ(queue.Enter(From("a", 7), 50), 100);  // the user counts, not the group
  EXPECT_EQ(queue.Enter(From("a", 8), 50), 150);
  EXPECT_EQ(queue.Enter(From("b"), 10), 0);
  EXPECT_EQ(queue.Enter(From("", 7), 10), 0);
  EXPECT_EQ(queue.Enter(From("", 7), 10), 0);  // the group's members share a tag
  EXPECT_EQ(queue.Enter(From(""), 10), 0);
  EXPECT_EQ(queue.Enter(From(""), 10), 0);
}

// 60 clients ask two questions each at the same time: both questions of a client go one after the
// other.
TEST(FairQueue, TheReadsOfOneRequestShareATag) {
  FairQueue queue;
  for (uint64_t group = 1; group <= 60; ++group) {
    EXPECT_EQ(queue.Enter(From("", group), 100), 0);
    EXPECT_EQ(queue.Enter(From("", group), 30), 0);
  }
  EXPECT_EQ(queue.Enter(From("a", 61), 100), 0);
  EXPECT_EQ(queue.Enter(From("a", 61), 30), 0);
  EXPECT_EQ(queue.Enter(From("a", 62), 10), 130);  // the user's next request waits for the cost of
                                                   // both
  EXPECT_EQ(queue.Enter(From("a", 62), 10), 130);
}

TEST(FairQueue, ALongGroupDoesNotHoldUpEveryone) {
  FairQueue queue;
  int64_t last = 0;
  for (int i = 0; i < 1000; ++i) last = queue.Enter(From("", 1), 100);
  EXPECT_GT(last, 90'000);
  queue.Serve(0, FairQueue::kGroupTokens);
  EXPECT_LE(queue.Enter(From("", 2), 10), FairQueue::kGroupTokens);
}

TEST(FairQueue, AccountsLiveAsLongAsTheirRequests) {
  FairQueue queue;
  queue.Enter(From("a"), 100);
  queue.Enter(From("a"), 100);
  queue.Enter(From(""), 100);
  EXPECT_EQ(queue.num_clients(), 2);
  queue.Leave(From("a"), 0);
  EXPECT_EQ(queue.num_clients(), 2);
  queue.Leave(From("a"), 0);
  queue.Leave(From(""), 0);
  EXPECT_EQ(queue.num_clients(), 0);
}

// A request that is cancelled before it runs does not delay the next request of its client.
TEST(FairQueue, WhatWasNeverServedIsGivenBack) {
  FairQueue queue;
  for (int i = 0; i < 10; ++i) queue.Enter(From("a"), 100);
  queue.Serve(0, 100);  // the first request runs
  for (int i = 1; i < 10; ++i) queue.Leave(From("a"), 100);
  EXPECT_EQ(queue.Enter(From("a"), 100), 100);
  queue.Leave(From("a"), 0);
  queue.Leave(From("a"), 100);
  EXPECT_EQ(queue.num_clients(), 0);
}

// One client has many requests. In each round, a new client brings one request of the same cost.
// That is more than the device can serve. The new clients do not starve the first, nor the other
// way round.
TEST(FairQueue, NewClientsDoNotStarveOldOnes) {
  FairQueue queue;
  struct Waiting {
    int64_t tag;
    int64_t arrival;
    Request request;
    auto operator<=>(const Waiting& other) const {
      return std::pair(tag, arrival) <=> std::pair(other.tag, other.arrival);
    }
    bool operator==(const Waiting& other) const { return arrival == other.arrival; }
  };
  std::vector<Waiting> waiting;
  int64_t arrival = 0;
  const auto arrive = [&](const Request& request) {
    const int64_t tag = queue.Enter(request, 10);
    waiting.push_back({tag, arrival++, request});
  };
  for (int i = 0; i < 1000; ++i) arrive(From("old"));
  int num_old = 0, num_new = 0;
  for (int round = 0; round < 400; ++round) {
    arrive(From("", 1 + round));
    const auto head = std::min_element(waiting.begin(), waiting.end());
    queue.Serve(head->tag, 10);
    queue.Leave(head->request, 0);
    ++(head->request.user == "old" ? num_old : num_new);
    waiting.erase(head);
  }
  EXPECT_GT(num_old, 5);  // the first client's share: 1 / 2 + 1 / 3 + ... + 1 / 400
  EXPECT_GT(num_new, 200);
}

}  // namespace
}  // namespace skein
