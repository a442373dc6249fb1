#include "base/threads/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/fp_mode.h"

namespace skein {
namespace {

// Runs lists of random lengths, with and without pauses, so that workers come late, sleep and wake.
// Tickets write to plain memory, so that the thread sanitizer sees missing synchronization.
TEST(ThreadTeamTest, RunsEveryTicketOnceAndReturnsAfterThem) {
  std::mt19937 random(1);
  for (int num_threads : {1, 2, 3, 8}) {
    ThreadTeam team(num_threads);
    EXPECT_EQ(team.num_threads(), num_threads);
    for (int round = 0; round < 400; ++round) {
      const int first = static_cast<int>(random() % 10);
      const int end = first + static_cast<int>(random() % 40);
      std::vector<int> runs(end), threads(end, -1);
      const int next = team.Run(first, end, [&](int ticket, int thread) {
        ++runs[ticket];
        threads[ticket] = thread;
      });
      ASSERT_EQ(next, end);
      for (int ticket = 0; ticket < end; ++ticket) {
        ASSERT_EQ(runs[ticket], ticket >= first ? 1 : 0);
        if (ticket >= first) {
          ASSERT_GE(threads[ticket], 0);
          ASSERT_LT(threads[ticket], num_threads);
        }
      }
      if (round % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  }
}

// A ticket without memory ends the list, on whichever thread it runs, and the next one runs.
TEST(ThreadTeamTest, AFailedAllocationReachesTheCaller) {
  for (const int num_threads : {1, 2, 4}) {
    ThreadTeam team(num_threads);
    for (int failing = 0; failing < 200; ++failing) {
      std::atomic<int> num_run{0};
      EXPECT_THROW(team.Run(0, 200,
                            [&](int ticket, int) {
                              if (ticket >= failing) throw std::bad_alloc();
                              ++num_run;
                            }),
                   std::bad_alloc);
      EXPECT_EQ(num_run, failing);
      std::atomic<int> num_after{0};
      EXPECT_EQ(team.Run(0, 20, [&](int, int) { ++num_after; }), 20);
      EXPECT_EQ(num_after, 20);
    }
  }
}

TEST(ThreadTeamTest, StopsBetweenTicketsAndSaysWhere) {
  for (int num_threads : {1, 4}) {
    ThreadTeam team(num_threads);
    for (int stop_at : {0, 1, 17, 99}) {
      std::atomic<bool> stop = false;
      std::vector<std::atomic<int>> runs(100);
      const int next = team.Run(
          0, 100,
          [&](int ticket, int) {
            ++runs[ticket];
            if (ticket == stop_at) stop = true;
          },
          &stop);
      EXPECT_GT(next, stop_at);
      EXPECT_LE(next, 100);
      if (num_threads == 1) {
        EXPECT_EQ(next, stop_at + 1);
      }
      for (int ticket = 0; ticket < 100; ++ticket) EXPECT_EQ(runs[ticket], ticket < next ? 1 : 0);
      // The next call continues at that ticket.
      EXPECT_EQ(team.Run(next, 100, [&](int ticket, int) { ++runs[ticket]; }), 100);
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadTeamTest, IssuesNothingIfStoppedBefore) {
  ThreadTeam team(3);
  const std::atomic<bool> stop = true;
  EXPECT_EQ(team.Run(
                5, 9, [](int, int) { FAIL(); }, &stop),
            5);
}

// The tickets behind a random stop still run, each once, on whichever thread continues.
TEST(ThreadTeamTest, StopsAtRandomAreStopsThatNobodyAskedFor) {
  for (int num_threads : {1, 3}) {
    for (uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      ThreadTeam team(num_threads);
      team.StopAtRandom(seed);
      const std::atomic<bool> never = false;
      int num_stops = 0, num_at_first = 0;
      for (int list = 0; list < 400; ++list) {
        const int end = list % 7;
        std::vector<std::atomic<int>> runs(end);
        const auto count = [&](int ticket, int) { ++runs[ticket]; };
        for (int next = 0, before = 0; (next = team.Run(next, end, count, &never)) < end;) {
          ++num_stops;
          num_at_first += next == before;
          before = next;
          for (int ticket = 0; ticket < end; ++ticket) {
            ASSERT_EQ(runs[ticket], ticket < next ? 1 : 0);
          }
        }
        for (const std::atomic<int>& run : runs) ASSERT_EQ(run, 1);
        ASSERT_EQ(team.Run(0, end, [](int, int) {}), end);  // a list without `stop` never stops
      }
      EXPECT_GT(num_stops, 20);
      EXPECT_LT(num_stops, 150);
      EXPECT_GT(num_at_first, 0);  // some stops come before the first ticket
      EXPECT_LT(num_at_first, num_stops);
    }
  }
}

TEST(ThreadTeamTest, ASlowTicketIsWaitedForWhileOthersGoOn) {
  ThreadTeam team(2);
  std::atomic<int> done = 0;
  team.Run(0, 20, [&](int ticket, int) {
    if (ticket == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++done;
  });
  EXPECT_EQ(done, 20);
}

TEST(ThreadTeamTest, AllThreadsFlushDenormalsAndTheCallerOnlyMeanwhile) {
  const bool before = ScopedFpMode::IsSet();
  ThreadTeam team(3);
  std::vector<int> set(60);
  std::vector<float> products(60);
  volatile float tiny = 0x1p-100f;
  team.Run(0, 60, [&](int ticket, int) {
    set[ticket] = ScopedFpMode::IsSet();
    products[ticket] = tiny * 0x1p-30f;
    std::this_thread::sleep_for(std::chrono::microseconds(50));  // every thread gets some tickets
  });
  for (int ticket = 0; ticket < 60; ++ticket) {
    EXPECT_TRUE(set[ticket]);
    EXPECT_EQ(products[ticket], 0.0f);
  }
  EXPECT_EQ(ScopedFpMode::IsSet(), before);
  EXPECT_FALSE(before);
  EXPECT_GT(tiny * 0x1p-30f, 0.0f);
}

// An idle team sleeps: it uses far less processor time than the time that passes.
TEST(ThreadTeamTest, AnIdleTeamUsesNoProcessorTime) {
  ThreadTeam team(4);
  team.Run(0, 100, [](int, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.1);
  EXPECT_EQ(team.Run(0, 100, [](int, int) {}), 100);
}

// The processors on which the calling thread may run.
std::vector<int> Processors() {
  cpu_set_t allowed;
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  return processors;
}

TEST(ThreadTeamTest, ThreadsAreAsManyAsMayRun) {
  EXPECT_EQ(ThreadsOrAll(3), 3);
  EXPECT_EQ(ThreadsOrAll(0), static_cast<int>(Processors().size()));
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(Processors().front(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(ThreadsOrAll(0), 1);
  }).join();
}

TEST(ThreadTeamTest, PinnedThreadsHaveAProcessorEach) {
  const std::vector<int> all = Processors();
  const auto num_threads = static_cast<int>(all.size());
  std::vector<std::vector<int>> seen(num_threads);
  // A temporary thread leads the team, so that the test's own thread is not bound to one processor.
  std::thread([&] {
    ThreadTeam team(num_threads);
    ASSERT_TRUE(team.Pin(NumaNodes()).ok());
    team.PinLeader();
    team.PinLeader();
    std::atomic<int> waiting = 0;
    team.Run(0, num_threads, [&](int, int thread) {
      seen[thread] = Processors();
      ++waiting;  // until all threads wait here, so that none takes a second ticket
      while (waiting < num_threads) std::this_thread::yield();
    });
  }).join();
  for (int thread = 0; thread < num_threads; ++thread) {
    EXPECT_EQ(seen[thread], std::vector<int>{all[thread]});
  }
  EXPECT_EQ(Processors(), all);
}

TEST(ThreadTeamTest, MoreThreadsThanProcessorsCannotBePinned) {
  ThreadTeam team(static_cast<int>(Processors().size()) + 1);
  const Status status = team.Pin(NumaNodes());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.param(), "pin_threads");
  team.PinLeader();  // has no effect
  EXPECT_EQ(team.Run(0, 10, [](int, int) {}), 10);
}

// Runs lists of `num_tickets` slow tickets on two pinned threads. Calls check(threads), the thread
// of each ticket, after each list.
template <typename Check>
void RunOnUnlikeProcessors(std::vector<float> speeds, int num_tickets, const Check& check) {
  std::thread([&] {
    ThreadTeam team(2);
    ASSERT_TRUE(team.Pin({{0, Processors()}}).ok());
    team.PinLeader();
    team.SetSpeeds(std::move(speeds));
    for (int list = 0; list < 50; ++list) {
      std::vector<int> threads(num_tickets, -1);
      const auto run = [&](int ticket, int thread) {
        threads[ticket] = thread;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      };
      ASSERT_EQ(team.Run(0, num_tickets, run), num_tickets);
      ASSERT_NO_FATAL_FAILURE(check(threads));
    }
  }).join();
}

TEST(ThreadTeamTest, AWorkerOnASlowProcessorLeavesTheLastTicketsToTheLeader) {
  const std::vector<int> all = Processors();
  if (all.size() < 2) GTEST_SKIP() << "one processor";
  std::vector<float> speeds(all[1] + 1, 1.0f);
  speeds[all[1]] = 0.25f;  // a ticket takes four times as long: three are left to the leader
  int num_of_worker = 0;
  RunOnUnlikeProcessors(speeds, 10, [&](const std::vector<int>& threads) {
    for (int ticket = 0; ticket < 7; ++ticket) num_of_worker += threads[ticket] == 1;
    for (int ticket = 7; ticket < 10; ++ticket) ASSERT_EQ(threads[ticket], 0) << ticket;
  });
  EXPECT_GT(num_of_worker, 0);
}

// A slow leader leaves nothing to a fast worker, and a slow worker nothing to a slow leader.
TEST(ThreadTeamTest, NoTicketIsLeftToASlowLeader) {
  const std::vector<int> all = Processors();
  if (all.size() < 2) GTEST_SKIP() << "one processor";
  for (const float of_worker : {1.0f, 0.25f}) {
    std::vector<float> speeds(all[1] + 1, 0.25f);
    speeds[all[1]] = of_worker;
    int last_of[2] = {};
    RunOnUnlikeProcessors(speeds, 10, [&](const std::vector<int>& threads) {
      for (int ticket = 7; ticket < 10; ++ticket) ++last_of[threads[ticket]];
    });
    EXPECT_GT(last_of[0], 0);
    EXPECT_GT(last_of[1], 0);
  }
}

}  // namespace
}  // namespace skein
