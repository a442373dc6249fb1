#include "base/threads/processor_speeds.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace skein {
namespace {

// A folder that describes a machine as Linux does: texts of files by their paths.
class DevicesFolder {
 public:
  explicit DevicesFolder(const std::map<std::string, std::string>& texts) {
    std::filesystem::remove_all(path_);
    for (const auto& [name, text] : texts) {
      std::filesystem::create_directories((path_ / name).parent_path());
      std::ofstream(path_ / name) << text << '\n';
    }
  }
  ~DevicesFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("skein-devices-" + std::to_string(getpid()) + "-" +
                                 ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::vector<float> SpeedsOf(const std::map<std::string, std::string>& texts,
                            const std::vector<NumaNode>& nodes) {
  const DevicesFolder folder(texts);
  return ProcessorSpeeds(nodes, folder.path());
}

std::map<std::string, std::string> WithCapacities(const std::vector<std::string>& capacities) {
  std::map<std::string, std::string> texts;
  for (size_t i = 0; i < capacities.size(); ++i) {
    texts["system/cpu/cpu" + std::to_string(i) + "/cpu_capacity"] = capacities[i];
  }
  return texts;
}

// Two fast processors and four efficient ones; `siblings` lists the threads of the first core.
std::map<std::string, std::string> OfTwoKinds(const std::string& siblings) {
  return {{"cpu_core/cpus", "0-1"},
          {"cpu_atom/cpus", "2-5"},
          {"system/cpu/cpu0/topology/thread_siblings_list", siblings},
          {"system/cpu/cpu1/topology/thread_siblings_list", siblings == "0" ? "1" : siblings}};
}

TEST(ProcessorSpeedsTest, CapacitiesAreSharesOfTheLargest) {
  const std::vector<NumaNode> all = {{0, {0, 1, 2, 3}}};
  EXPECT_EQ(SpeedsOf(WithCapacities({"800", "800", "400", "200"}), all),
            (std::vector<float>{1, 1, 0.5f, 0.25f}));
}

TEST(ProcessorSpeedsTest, ProcessorsThatMayNotBeUsedDoNotCount) {
  const auto texts = WithCapacities({"1024", "1024", "512", "256"});
  EXPECT_EQ(SpeedsOf(texts, {{0, {3}}, {1, {2}}}), (std::vector<float>{1, 1, 1, 0.5f}));
  EXPECT_TRUE(SpeedsOf(texts, {{0, {0, 1}}}).empty());
  EXPECT_TRUE(SpeedsOf(texts, {{0, {2}}}).empty());
  EXPECT_TRUE(SpeedsOf(texts, {}).empty());
}

TEST(ProcessorSpeedsTest, EqualOrMissingCapacitiesSayNothing) {
  const std::vector<NumaNode> all = {{0, {0, 1}}};
  EXPECT_TRUE(SpeedsOf({}, all).empty());
  EXPECT_TRUE(SpeedsOf(WithCapacities({"1024", "1024"}), all).empty());
  EXPECT_TRUE(SpeedsOf(WithCapacities({"1024"}), all).empty());
  EXPECT_TRUE(SpeedsOf(WithCapacities({"1024", "fast"}), all).empty());
  EXPECT_TRUE(SpeedsOf(WithCapacities({"1024", "0"}), all).empty());
}

TEST(ProcessorSpeedsTest, TwoKindsOfProcessors) {
  const float slow = kEfficientSpeed;
  const std::vector<NumaNode> all = {{0, {0, 1, 2, 3, 4, 5}}};
  const std::vector<float> speeds = {1, 1, slow, slow, slow, slow};
  EXPECT_EQ(SpeedsOf(OfTwoKinds("0"), all), speeds);
  auto texts = OfTwoKinds("0");
  texts.merge(WithCapacities({"1024", "1024", "1024", "1024", "1024", "1024"}));
  EXPECT_EQ(SpeedsOf(texts, all), speeds);
}

// Each of two threads that share a fast core has about the speed of an efficient one.
TEST(ProcessorSpeedsTest, ThreadsThatShareAFastCoreAreNotFast) {
  EXPECT_TRUE(SpeedsOf(OfTwoKinds("0-1"), {{0, {0, 1, 2, 3, 4, 5}}}).empty());
  // The second thread of the core may not be used.
  EXPECT_EQ(SpeedsOf(OfTwoKinds("0-1"), {{0, {0, 2}}}),
            (std::vector<float>{1, 1, kEfficientSpeed}));
}

TEST(ProcessorSpeedsTest, OneKindOfProcessorsIsEquallyFast) {
  EXPECT_TRUE(SpeedsOf(OfTwoKinds("0"), {{0, {0, 1}}}).empty());
  EXPECT_TRUE(SpeedsOf(OfTwoKinds("0"), {{0, {2, 3, 4}}}).empty());
}

TEST(ProcessorSpeedsTest, TheFastestProcessorsOfANodeComeFirst) {
  std::vector<NumaNode> nodes = {{0, {0, 1, 2, 3}}, {1, {4, 5}}};
  SortBySpeed({}, &nodes);
  EXPECT_EQ(nodes[0].processors, (std::vector<int32_t>{0, 1, 2, 3}));
  SortBySpeed({0.5f, 1, 0.5f, 1, 0.5f, 1}, &nodes);
  EXPECT_EQ(nodes[0].processors, (std::vector<int32_t>{1, 3, 0, 2}));
  EXPECT_EQ(nodes[1].processors, (std::vector<int32_t>{5, 4}));
}

// This machine has some answer, whichever it is.
TEST(ProcessorSpeedsTest, SpeedsAreSharesOfTheFastestHere) {
  for (const float speed : ProcessorSpeeds(NumaNodes())) {
    EXPECT_GT(speed, 0.0f);
    EXPECT_LE(speed, 1.0f);
  }
}

}  // namespace
}  // namespace skein
