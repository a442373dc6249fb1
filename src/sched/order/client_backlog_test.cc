#include "sched/order/client_backlog.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

Request OfClient(const std::string& user, uint64_t group = 0) {
  Request request;
  request.user = user;
  request.group.id = group;
  return request;
}

TEST(ClientBacklog, NumbersThePromptsOfEachClient) {
  ClientBacklog backlog;
  EXPECT_EQ(backlog.Enter(OfClient("a"), 100), 1);
  EXPECT_EQ(backlog.Enter(OfClient("a"), 50), 2);
  EXPECT_EQ(backlog.Enter(OfClient("b"), 10), 1);
  EXPECT_EQ(backlog.Enter(OfClient(""), 7), 1);
  EXPECT_EQ(backlog.Enter(OfClient(""), 7), 1);  // each is a client of its own
  EXPECT_EQ(backlog.num_tokens(), 174);
  backlog.Leave(OfClient("a"), 100);
  EXPECT_EQ(backlog.Enter(OfClient("a"), 1), 2);
  EXPECT_EQ(backlog.num_tokens(), 75);
}

TEST(ClientBacklog, AGroupWithoutAUserIsAClient) {
  ClientBacklog backlog;
  EXPECT_EQ(backlog.Enter(OfClient("", 7), 100), 1);
  EXPECT_EQ(backlog.Enter(OfClient("", 7), 20), 2);
  EXPECT_EQ(backlog.Enter(OfClient("", 8), 30), 1);
  EXPECT_EQ(backlog.Enter(OfClient("a", 7), 30), 1);
  EXPECT_EQ(backlog.Enter(OfClient("a", 9), 30), 2);  // the user counts, not the group
}

TEST(ClientBacklog, ForgetsClientsWithoutPrompts) {
  ClientBacklog backlog;
  EXPECT_TRUE(backlog.empty());
  backlog.Enter(OfClient("a", 7), 100);
  EXPECT_FALSE(backlog.empty());
  backlog.Leave(OfClient("a", 7), 100);
  EXPECT_TRUE(backlog.empty());
  EXPECT_EQ(backlog.num_tokens(), 0);
  EXPECT_EQ(backlog.Enter(OfClient("a", 7), 5), 1);
}

}  // namespace
}  // namespace skein
