#include "model/forward/grouped_cut.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace skein {
namespace {

// Products of 5, 0, 1 and 0 rows; a cut has 2 rows and 16 of 40 columns.
GroupedCut FourGroups() {
  GroupedCut grouped(4);
  grouped.Set(0, {.rows = 2, .cols = 16, .num_row_chunks = 3, .num_col_chunks = 3});
  grouped.Set(1, {});
  grouped.Set(2, {.rows = 2, .cols = 16, .num_row_chunks = 1, .num_col_chunks = 3});
  grouped.Set(3, {});
  return grouped;
}

TEST(GroupedCutTest, EveryTicketOfEveryGroupIsFoundOnce) {
  const GroupedCut grouped = FourGroups();
  ASSERT_EQ(grouped.num_tickets(), 12);
  std::set<std::tuple<int32_t, int32_t, int32_t>> found;
  int32_t last_group = 0;
  for (int32_t i = 0; i < grouped.num_tickets(); ++i) {
    const GroupedCut::Ticket ticket = grouped.Find(i);
    EXPECT_GE(ticket.group, last_group);
    last_group = ticket.group;
    EXPECT_TRUE(ticket.group == 0 || ticket.group == 2) << ticket.group;
    EXPECT_LT(ticket.row, ticket.group == 0 ? 5 : 1);
    EXPECT_EQ(ticket.row % 2, 0);
    EXPECT_LT(ticket.col, 40);
    EXPECT_EQ(ticket.col % 16, 0);
    EXPECT_TRUE(found.emplace(ticket.group, ticket.row, ticket.col).second) << i;
  }
  EXPECT_EQ(found.size(), 12u);
}

TEST(GroupedCutTest, AGroupThatLosesItsRowsLosesItsTickets) {
  GroupedCut grouped = FourGroups();
  grouped.Set(0, {});
  grouped.Set(1, {});
  grouped.Set(2, {.rows = 2, .cols = 16, .num_row_chunks = 1, .num_col_chunks = 3});
  grouped.Set(3, {});
  ASSERT_EQ(grouped.num_tickets(), 3);
  EXPECT_EQ(grouped.Find(0).group, 2);
  EXPECT_EQ(grouped.Find(2).col, 32);
}

}  // namespace
}  // namespace skein
