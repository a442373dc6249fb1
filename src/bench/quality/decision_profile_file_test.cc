#include "bench/quality/decision_profile_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "apps/host/decision_profile.h"
#include "apps/read_json.h"
#include "server/decisions/decision_method_names.h"

namespace skein {
namespace {

DecisionProfile ReadBack(const std::string& path) {
  const Result<Json> json = ReadJson(path);
  EXPECT_TRUE(json.ok()) << json.status().message();
  if (!json.ok()) return {};
  const auto profile = ParseDecisionProfile(json.value(), {});
  EXPECT_TRUE(profile.ok()) << profile.status().message();
  return profile.ok() ? profile.value() : DecisionProfile{};
}

TEST(DecisionProfileFileTest, KeepsTheFormerFile) {
  const std::string dir = ::testing::TempDir() + "skein-profile-file";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  DecisionProfile first;
  first.choice.reading = Reading::kWords;
  first.choice.calibrated = true;
  first.choice.temperature = 2.5;
  DecisionProfile second;
  second.score.prompt = PromptForm::kCue;
  const auto one = WriteDecisionProfile(first, dir, "m");
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(one.value().path, dir + "/" + kDecisionProfileFile);
  EXPECT_EQ(one.value().backup, "");
  EXPECT_EQ(ReadBack(one.value().path), first);
  const auto two = WriteDecisionProfile(second, dir, "m");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(ReadBack(two.value().path), second);
  EXPECT_EQ(ReadBack(two.value().backup), first);
}

TEST(DecisionProfileFileTest, TheUsersOwnWhereTheModelCannotBeWritten) {
  const std::string config = ::testing::TempDir() + "skein-profile-config";
  std::filesystem::remove_all(config);
  const char* former = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = former != nullptr ? former : "";
  setenv("XDG_CONFIG_HOME", config.c_str(), 1);
  const auto written = WriteDecisionProfile({}, "/nowhere/model", "org/m");
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(written.value().path, config + "/skein/org--m.decisions.json");
  EXPECT_EQ(ReadBack(written.value().path), DecisionProfile{});
  former != nullptr ? setenv("XDG_CONFIG_HOME", kept.c_str(), 1) : unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace skein
