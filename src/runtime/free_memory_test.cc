#include "runtime/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace skein {
namespace {

constexpr int64_t kFreeMib = int64_t{1} << 20;

TEST(FreeMemory, TheLeastOfMachineGroupAndLimit) {
  const std::string root = ::testing::TempDir() + "skein_free_" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/proc/self");
  std::filesystem::create_directories(root + "/cgroup/own");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(root + "/" + name) << text;
  };
  const MemoryFiles files{root + "/proc", root + "/cgroup"};
  EXPECT_EQ(FreeMemoryBytes(0, files), 0);  // not known
  write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
  write("proc/self/status", "VmData: 1024 kB\nRssAnon: 102400 kB\nThreads: 1\n");
  write("proc/self/cgroup", "0::/own\n");
  EXPECT_EQ(FreeMemoryBytes(0, files), 4096 * kFreeMib);
  EXPECT_EQ(FreeMemoryBytes(900 * kFreeMib, files), 800 * kFreeMib);
  EXPECT_EQ(FreeMemoryBytes(50 * kFreeMib, files), 1);
  write("cgroup/own/memory.max", std::to_string(700 * kFreeMib));
  write("cgroup/own/memory.current", std::to_string(100 * kFreeMib));
  EXPECT_EQ(FreeMemoryBytes(0, files), 600 * kFreeMib);
  EXPECT_EQ(FreeMemoryBytes(900 * kFreeMib, files), 600 * kFreeMib);
  EXPECT_EQ(FreeMemoryBytes(500 * kFreeMib, files), 400 * kFreeMib);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace skein
