// Tests `skein policy show` and the table that --stop-table writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "apps/commands.h"
#include "apps/sim/stop_table_writer.h"
#include "io/json_file.h"
#include "sched/decode_set/stop_table.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr size_t kMaxBytes = 1 << 20;

class PolicyCommandTest : public ::testing::Test {
 protected:
  PolicyCommandTest()
      : dir_(fs::temp_directory_path() / ("skein_policy_" + std::to_string(getpid()))),
        file_((dir_ / "table.json").string()) {
    fs::create_directories(dir_);
    table_.num_batches = 7;
    table_.num_decisions = 12;
    table_.best_reward = 200;
    CellsOf({.batch_size = 8, .lost_tokens = 129}) = {{{2, 120.5}, {3, 100}}};
    CellsOf({.batch_size = 1, .num_peers = 2}) = {{{0, 0}, {5, 50}}};
    CellsOf({.batch_size = 2, .num_peers = 1}) = {{{4, 80}, {0, 0}}};  // no request was ever added
    CellsOf({.batch_size = 1 << 15, .lost_tokens = 2049, .num_peers = 1}) = {{{1, 7}, {1, 7}}};
  }
  ~PolicyCommandTest() override { fs::remove_all(dir_); }

  StopTable::Cells& CellsOf(const StopQuestion& question) {
    return table_.cells[StopState(question).index()];
  }

  // Runs a command line; stores its output and returns its exit status.
  int Run(const std::string& command_line) {
    CLI::App app;
    int exit_status = 0;
    AddPolicyCommand(&app, &exit_status);
    AddSimCommand(&app, &exit_status);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    app.parse(command_line);
    out_ = ::testing::internal::GetCapturedStdout();
    error_ = ::testing::internal::GetCapturedStderr();
    return exit_status;
  }

  int Show(const std::string& path) { return Run("policy show " + path); }

  // Writes table_ to file_; returns what was printed to stderr.
  std::string Write() {
    ::testing::internal::CaptureStderr();
    StopTableWriter(file_).OnEnd(&table_);
    return ::testing::internal::GetCapturedStderr();
  }
  StopTable ReadBack() const {
    return StopTable::FromJson(ReadFile(file_, kMaxBytes).value()).value();
  }

  const fs::path dir_;
  const std::string file_;
  StopTable table_;
  std::string out_, error_;
};

TEST_F(PolicyCommandTest, ShowsWhatWasLearned) {
  EXPECT_EQ(Write(), "");
  EXPECT_EQ(Show(file_), 0);
  EXPECT_EQ(error_, "");
  EXPECT_THAT(out_, HasSubstr("bandit: 7 batches, 12 decisions, best 200.0 tokens/s\n"));
  // Lines are in the order of batch, lost tokens and peers. A bin is shown by its ends.
  EXPECT_THAT(out_, HasSubstr(R"(  prefers
             1            0           2-3         5        50.0         0         0.0  add
           2-3            0             1         0         0.0         4        80.0  add
          8-15      129-512             0         3       100.0         2       120.5  stop
        32768+        2049+             1         1         7.0         1         7.0  add
)"));
}

TEST_F(PolicyCommandTest, RefusesWhatIsNoTable) {
  EXPECT_EQ(Show(file_), 1);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(error_, HasSubstr("skein policy show: "));
  EXPECT_THAT(error_, HasSubstr(file_));
  std::ofstream(file_) << R"({"policy": "never"})";
  EXPECT_EQ(Show(file_), 1);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(error_,
            "skein policy show: " + file_ + ": 'policy' must be 'bandit' or 'q-learning'\n");
}

TEST_F(PolicyCommandTest, TheTableIsReplacedWhenTheNewOneIsWhole) {
  EXPECT_EQ(Write(), "");
  const StopTable before = table_;
  EXPECT_EQ(ReadBack(), before);
  table_.num_batches = 8;
  fs::create_directory(file_ + ".tmp");  // the file cannot be written
  EXPECT_THAT(Write(), HasSubstr("--stop-table: cannot write " + file_ + ".tmp"));
  EXPECT_EQ(ReadBack(), before);
  fs::remove(file_ + ".tmp");
  EXPECT_EQ(Write(), "");
  EXPECT_EQ(ReadBack(), table_);
  EXPECT_FALSE(fs::exists(file_ + ".tmp"));
  // The file is not written either if nothing was learned.
  const StopTable after = table_;
  table_.num_batches = 0;
  EXPECT_EQ(Write(), "");
  EXPECT_EQ(ReadBack(), after);
  fs::remove(file_);
  fs::create_directory(file_);
  table_.num_batches = 9;
  EXPECT_THAT(Write(), HasSubstr("--stop-table: cannot replace " + file_));
}

TEST_F(PolicyCommandTest, ATableIsReadWhereARuleLearns) {
  SchedulerConfig config;
  config.policies = FindPreset("feather")->policies;
  config.prefix_groups.stop.rule = StopRule::kBandit;
  EXPECT_TRUE(ReadStopTable(file_, &config).ok());  // as in the first run
  EXPECT_EQ(config.prefix_groups.learned, nullptr);
  EXPECT_EQ(Write(), "");
  EXPECT_TRUE(ReadStopTable(file_, &config).ok());
  ASSERT_NE(config.prefix_groups.learned, nullptr);
  EXPECT_EQ(*config.prefix_groups.learned, table_);
  const auto refused = [](SchedulerConfig other) {
    return ReadStopTable("none", &other).param() == "stop_table";
  };
  EXPECT_TRUE(refused({.policies = FindPreset("vllm-fcfs")->policies}));
  EXPECT_TRUE(refused({.policies = FindPreset("feather")->policies,
                       .prefix_groups = {.stop = {.rule = StopRule::kHeuristic}}}));
}

// With several replicas there is no table, since each replica would write its own.
TEST_F(PolicyCommandTest, ReplicasKeepNoTable) {
  EXPECT_EQ(
      Run("sim --device none --model none --workload none --replicas 2 --stop-table " + file_), 1);
  EXPECT_THAT(error_, HasSubstr("skein sim: replicas is 2, must be 1 with stop-table: "));
  EXPECT_FALSE(fs::exists(file_));
}

}  // namespace
}  // namespace skein
