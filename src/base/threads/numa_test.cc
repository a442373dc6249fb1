#include "base/threads/numa.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/thread_team.h"

namespace skein {
namespace {

std::vector<int32_t> AllowedProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<int32_t> processors;
  for (int32_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  return processors;
}

// A folder that describes a machine's nodes by their lists of processors.
class NodeFolder {
 public:
  explicit NodeFolder(const std::vector<std::pair<std::string, std::string>>& lists) {
    std::filesystem::remove_all(path_);
    for (const auto& [name, list] : lists) {
      std::filesystem::create_directories(path_ / name);
      std::ofstream(path_ / name / "cpulist") << list << '\n';
    }
  }
  ~NodeFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("skein-nodes-" + std::to_string(getpid()) + "-" +
                                 ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST(NumaTest, ListsOfProcessors) {
  EXPECT_EQ(ParseCpuList("0-2,5"), (std::vector<int32_t>{0, 1, 2, 5}));
  EXPECT_EQ(ParseCpuList("7"), std::vector<int32_t>{7});
  for (const char* bad : {"", "-", "1-", "-1", "2-1", "1,,2", "a", "1-99999999", "1 2"}) {
    EXPECT_EQ(ParseCpuList(bad), std::vector<int32_t>{}) << bad;
  }
}

TEST(NumaTest, NodesHaveTheProcessorsOnWhichTheThreadMayRun) {
  const int32_t mine = AllowedProcessors().front();
  const NodeFolder folder({{"node10", std::to_string(mine)},
                           {"node2", std::to_string(mine) + "-" + std::to_string(mine)},
                           {"node3", ""},           // memory without processors
                           {"node4", "1022-1023"},  // not this machine's
                           {"node5", "nonsense"},
                           {"nodes", "0"},
                           {"power", "0"}});
  const std::vector<NumaNode> nodes = NumaNodes(folder.path());
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].id, 2);
  EXPECT_EQ(nodes[1].id, 10);
  EXPECT_EQ(nodes[1].processors, std::vector<int32_t>{mine});
}

TEST(NumaTest, AMachineWithoutNodesIsOneNode) {
  const std::vector<NumaNode> nodes = NumaNodes("/no/such/folder");
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].processors, AllowedProcessors());
}

// The node of each thread of a bound team, and the processors on which it may run.
struct Bound {
  std::vector<int32_t> nodes;
  std::vector<std::vector<int32_t>> processors;
};

// Runs a team that `bind` has bound, until each of its threads has had a ticket.
template <typename Bind>
Bound BoundThreads(int num_threads, const Bind& bind) {
  Bound bound{std::vector<int32_t>(num_threads, -1),
              std::vector<std::vector<int32_t>>(num_threads)};
  std::thread([&] {  // the leader is bound, too
    ThreadTeam team(num_threads);
    ASSERT_TRUE(bind(team).ok());
    team.PinLeader();
    std::atomic<int> waiting = 0;
    team.Run(0, num_threads, [&](int, int thread) {
      bound.nodes[thread] = ThisNode();
      bound.processors[thread] = AllowedProcessors();
      ++waiting;
      while (waiting < num_threads) std::this_thread::yield();
    });
  })
      .join();
  return bound;
}

// On this machine's processors, whatever their number: the nodes may share one.
TEST(NumaTest, ThreadsAreSpreadOverNodesByTheirProcessors) {
  const std::vector<int32_t> all = AllowedProcessors();
  const std::vector<NumaNode> halves = {{0, {all.front()}}, {1, {all.back()}}};
  const Bound bound = BoundThreads(4, [&](ThreadTeam& team) { return team.BindToNodes(halves); });
  EXPECT_EQ(bound.nodes, (std::vector<int32_t>{0, 1, 0, 1}));
  for (int thread = 0; thread < 4; ++thread) {
    EXPECT_EQ(bound.processors[thread], halves[bound.nodes[thread]].processors);
  }
  const std::vector<NumaNode> uneven = {{0, {all.front(), all.front(), all.front()}},
                                        {4, {all.back()}}};
  const Bound four = BoundThreads(4, [&](ThreadTeam& team) { return team.Pin(uneven); });
  EXPECT_EQ(std::ranges::count(four.nodes, 0), 3);
  EXPECT_EQ(ThisNode(), 0);  // of a thread that is in no team
}

TEST(NumaTest, EachNodeIsWrittenByAThreadThatRunsThere) {
  const std::vector<int32_t> all = AllowedProcessors();
  const std::vector<NumaNode> nodes = {{0, {all.front()}}, {1, {all.back()}}};
  std::vector<std::vector<int32_t>> seen(2);
  ASSERT_TRUE(OnEachNode(nodes, [&](int32_t index) { seen[index] = AllowedProcessors(); }).ok());
  EXPECT_EQ(seen[0], nodes[0].processors);
  EXPECT_EQ(seen[1], nodes[1].processors);
  EXPECT_EQ(AllowedProcessors(), all);
  EXPECT_THROW((void)OnEachNode(nodes, [](int32_t) { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(NumaTest, ProcessorsThatAreNotThereAreNamed) {
  const Status status = OnEachNode({{3, {CPU_SETSIZE - 1}}}, [](int32_t) { FAIL(); });
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.param(), "numa");
  EXPECT_NE(status.message().find("node 3"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace skein
