#include "base/memory_limit.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "testing/counted_allocations.h"
#include "testing/failing_allocations.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int kRefused = 7, kNotRefused = 8;

// A folder with the files of a machine of 8 GiB.
class MemoryLimitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "skein_groups_" + std::to_string(getpid());
    files_ = {root_ + "/proc", root_ + "/cgroup"};
    Write("proc/meminfo", "MemTotal:        8388608 kB\nMemAvailable:    4194304 kB\n");
    Write("proc/self/status", "VmData:\t  204800 kB\nRssAnon:\t   51200 kB\nThreads:\t4\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name) << text;
  }
  void WriteGroup2(const std::string& dir, const std::string& max, int64_t used_mib,
                   int64_t files_mib, const std::string& high = "max") {
    Write(dir + "/memory.max", max + "\n");
    Write(dir + "/memory.high", high + "\n");
    Write(dir + "/memory.current", std::to_string(used_mib * kMib) + "\n");
    Write(dir + "/memory.stat", "anon 1\nfile 999999999999\ninactive_file " +
                                    std::to_string(files_mib * kMib) + "\nactive_file 0\n");
  }
  void WriteGroup1(const std::string& dir, const std::string& limit, int64_t used_mib,
                   int64_t files_mib) {
    Write(dir + "/memory.limit_in_bytes", limit + "\n");
    Write(dir + "/memory.usage_in_bytes", std::to_string(used_mib * kMib) + "\n");
    Write(dir + "/memory.stat", "inactive_file 5\ntotal_inactive_file 0\ntotal_active_file " +
                                    std::to_string(files_mib * kMib) + "\n");
  }
  void ExpectGroup(int64_t limit_mib, int64_t left_mib) {
    const auto group = ReadGroupMemory(files_);
    ASSERT_TRUE(group.has_value());
    EXPECT_EQ(group->limit_bytes, limit_mib * kMib);
    EXPECT_EQ(group->left_bytes, left_mib * kMib);
  }
  static std::string Mib(int64_t mib) { return std::to_string(mib * kMib); }

  std::string root_;
  MemoryFiles files_;
};

TEST_F(MemoryLimitTest, NoFilesAndNoLimits) {
  EXPECT_FALSE(ReadGroupMemory(files_).has_value());
  for (const char* groups : {"", "nonsense", ":", "0:", "0::", "0::/a\n4:memory:/b\n"}) {
    Write("proc/self/cgroup", groups);
    EXPECT_FALSE(ReadGroupMemory(files_).has_value()) << groups;
  }
  WriteGroup2("cgroup/a", "max", 100, 10);
  WriteGroup1("cgroup/memory/b", "9223372036854771712", 100, 10);  // no limit, in version 1
  EXPECT_FALSE(ReadGroupMemory(files_).has_value());
  WriteGroup2("cgroup/a", Mib(8192), 100, 10);  // not below the machine's memory
  EXPECT_FALSE(ReadGroupMemory(files_).has_value());
}

TEST_F(MemoryLimitTest, Version2) {
  Write("proc/self/cgroup", "0::/\n");
  WriteGroup2("cgroup", Mib(400), 100, 30);
  ExpectGroup(400, 330);
  WriteGroup2("cgroup", Mib(400), 100, 30, /*high=*/Mib(350));
  ExpectGroup(350, 280);
  WriteGroup2("cgroup", Mib(400), 900, 30);  // the limit was lowered below what is used
  ExpectGroup(400, 0);
}

TEST_F(MemoryLimitTest, NestedGroups) {
  Write("proc/self/cgroup", "0::/outer/inner/own\n");
  WriteGroup2("cgroup/outer", Mib(1000), 800, 0);
  WriteGroup2("cgroup/outer/inner", Mib(600), 100, 0);
  WriteGroup2("cgroup/outer/inner/own", "max", 50, 0);
  // The lowest limit, and what is left in another group.
  ExpectGroup(600, 200);
  WriteGroup2("cgroup/outer/inner/own", Mib(90), 50, 5);
  ExpectGroup(90, 45);
}

TEST_F(MemoryLimitTest, Version1) {
  Write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/outer/own\n0::/\n");
  WriteGroup1("cgroup/memory/outer", Mib(500), 200, 20);
  WriteGroup1("cgroup/memory/outer/own", Mib(300), 100, 10);
  WriteGroup1("cgroup/memory", "9223372036854771712", 3000, 10);
  ExpectGroup(300, 210);
  // In a container the path is the host's: the folder that is seen is the group.
  Write("proc/self/cgroup", "4:memory:/docker/0123\n");
  WriteGroup1("cgroup/memory", Mib(250), 100, 0);
  ExpectGroup(250, 150);
  Write("proc/self/cgroup", "4:memory:/../elsewhere\n");
  ExpectGroup(250, 150);
}

TEST_F(MemoryLimitTest, OwnMemory) {
  const OwnMemory own = ReadOwnMemory(files_);
  EXPECT_EQ(own.mapped_bytes, 200 * kMib);
  EXPECT_EQ(own.resident_bytes, 50 * kMib);
  EXPECT_EQ(own.num_threads, 4);
}

TEST_F(MemoryLimitTest, MappedMemoryThatIsNotTouchedTakesItsPart) {
  // 200 MiB are mapped, 50 resident, 32 of stacks: 118 may still be touched.
  const OwnMemory own{200 * kMib, 50 * kMib, 4};
  EXPECT_EQ(MappedMax(own, 500 * kMib, 20 * kMib), (200 + 480 - 118) * kMib);
  EXPECT_EQ(MappedMax(own, 140 * kMib, 20 * kMib), (200 + 30) * kMib);  // a quarter at least
  EXPECT_EQ(MappedMax(own, 10 * kMib, 20 * kMib), 200 * kMib);
  EXPECT_EQ(MappedMax({60 * kMib, 50 * kMib, 4}, 100 * kMib, 0), 160 * kMib);
}

// Each runs in a process of its own, whose limit it lowers.
int ExitStatusOf(const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Takes 16 MiB after 16 MiB, up to `mib`, and touches them.
int Take(int64_t mib) {
  constexpr int64_t kStep = 16 * kMib;
  for (int64_t i = 0; i < mib * kMib / kStep; ++i) {
    try {
      auto* block = static_cast<volatile char*>(::operator new(kStep));
      for (int64_t at = 0; at < kStep; at += 4096) block[at] = 1;
    } catch (const std::bad_alloc&) {
      return kRefused;
    }
  }
  return kNotRefused;
}

// The mappings that small allocations of a new thread take where addresses for an arena are
// missing.
size_t MappingsOfAThread(bool shared) {
  constexpr int64_t kRoom = 48 * kMib;  // enough for the thread's stack
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = static_cast<rlim_t>(ReadMemoryLine("/proc/self/status", "VmSize:") + kRoom);
  setrlimit(RLIMIT_AS, &limit);
  if (shared) ShareArenas();
  size_t mappings = 0;
  std::thread([&mappings] {
    std::vector<std::unique_ptr<std::string>> texts;
    for (int i = 0; i < 100; ++i) texts.push_back(std::make_unique<std::string>(100, 'x'));
    mappings = mallinfo2().hblks;
  }).join();
  return mappings;
}

TEST_F(MemoryLimitTest, AThreadWithoutRoomForAnArenaSharesOne) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator has no arenas";
#endif
  // In processes that begin anew: this one may keep the arenas of threads that have ended.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(MappingsOfAThread(/*shared=*/false) > 100 ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(MappingsOfAThread(/*shared=*/true) < 10 ? 0 : 1), ::testing::ExitedWithCode(0),
              "");
}

TEST_F(MemoryLimitTest, TheCeilingRefusesMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator does not outlive a refusal";
#endif
  Write("proc/self/cgroup", "0::/\n");
  WriteGroup2("cgroup", Mib(1024), 900, 0);
  EXPECT_EQ(ExitStatusOf([&] {
              MemoryCeiling ceiling(0, files_);
              ceiling.Update();
              // The status file says 200 MiB; the ceiling lies a quarter of 92 MiB above them.
              rlimit limit{};
              getrlimit(RLIMIT_DATA, &limit);
              return static_cast<int64_t>(limit.rlim_cur) == (200 + 23) * kMib ? 0 : 1;
            }),
            0);
  EXPECT_EQ(ExitStatusOf([&] {
              MemoryCeiling ceiling(ReadOwnMemory().resident_bytes + 200 * kMib);
              ceiling.Update();
              if (ceiling.limit_bytes() == 0 || ceiling.room_bytes() > 200 * kMib) return 1;
              return Take(400);
            }),
            kRefused);
  EXPECT_EQ(ExitStatusOf([&] { return Take(400); }), kNotRefused);
  EXPECT_EQ(ExitStatusOf([&] {
              rlimit before{}, during{}, after{};
              getrlimit(RLIMIT_DATA, &before);
              MemoryCeiling ceiling(0, files_);
              ceiling.Update();
              getrlimit(RLIMIT_DATA, &during);
              Write("proc/self/cgroup", "0::/none\n");
              fs::remove_all(root_ + "/cgroup");
              ceiling.Update();
              getrlimit(RLIMIT_DATA, &after);
              const bool restored = before.rlim_cur == after.rlim_cur;
              return ceiling.limit_bytes() == 0 && restored && during.rlim_cur < after.rlim_cur ? 0
                                                                                                : 1;
            }),
            0);
}

// Whichever allocation of an update fails, the ceiling stays as it was, and the next update adapts
// it.
TEST_F(MemoryLimitTest, AnUpdateWithoutMemoryKeepsTheCeiling) {
  const fs::path deep = "/a-group-whose-name-takes-memory/and-another-one";
  Write("proc/self/cgroup", "0::" + deep.string() + "\n");
  WriteGroup2("cgroup" + deep.string(), Mib(1024), 100, 0);
  EXPECT_EQ(ExitStatusOf([&] {
              MemoryCeiling ceiling(0, files_);
              ceiling.Update();
              rlimit before{}, after{};
              getrlimit(RLIMIT_DATA, &before);
              int64_t num_failed = 0;
              for (int64_t n = 0, failed = 1; failed > 0; ++n, num_failed += failed) {
                testing::FailingAllocations::Begin(n, 1);
                ceiling.Update();
                failed = testing::FailingAllocations::End();
                getrlimit(RLIMIT_DATA, &after);
                if (after.rlim_cur != before.rlim_cur) return 1;
                if (ceiling.limit_bytes() != 1024 * kMib) return 2;
              }
              if (num_failed < 5) return 3;
              WriteGroup2("cgroup" + deep.string(), Mib(1024), 200, 0);
              ceiling.Update();
              getrlimit(RLIMIT_DATA, &after);
              return after.rlim_cur < before.rlim_cur ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace skein
