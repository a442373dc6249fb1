#include "apps/host/decision_profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace skein {
namespace {

class DecisionProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/skein-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    ::setenv("XDG_CONFIG_HOME", (dir_ + "/config").c_str(), 1);
    Write("config.json", "{}");
  }
  void TearDown() override {
    ::unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(dir_);
  }

  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ + "/" + name).parent_path());
    std::ofstream(dir_ + "/" + name) << text;
  }
  Result<DecisionProfile> Load(int64_t num_parameters = 7'000'000'000) {
    DecisionProfileSource source;
    source.model_dir = dir_;
    source.model_name = "org/name";
    source.num_parameters = num_parameters;
    source.reading = reading_;
    source.prompt = prompt_;
    return LoadDecisionProfile(source);
  }

  std::string dir_;
  std::optional<NamedReading> reading_;
  std::optional<PromptForm> prompt_;
};

TEST_F(DecisionProfileTest, FilesGoBeforeWhatIsUsual) {
  EXPECT_EQ(Load()->choice.reading, Reading::kLetters);
  EXPECT_EQ(Load(135'000'000)->choice.reading, Reading::kWords);
  // A model whose config has a temperature was trained on letters.
  Write("config.json", R"({"decision_temperature": 1.5})");
  EXPECT_EQ(Load(135'000'000)->choice.reading, Reading::kLetters);
  EXPECT_EQ(Load(135'000'000)->predicate.temperature, 1.5);
  Write("config/skein/org--name.decisions.json",
        R"({"version": 1, "choice": {"reading": "words+permuted", "prompt": "cue"}})");
  EXPECT_EQ(Load()->choice.prompt, PromptForm::kCue);
  EXPECT_TRUE(Load()->choice.permuted);
  EXPECT_EQ(Load()->score.reading, Reading::kLetters);
  Write("skein.decisions.json",
        R"({"version": 1, "choice": {"reading": "words+calibrated", "temperature": 2}})");
  EXPECT_TRUE(Load()->choice.calibrated);
  EXPECT_FALSE(Load()->choice.permuted);
  EXPECT_EQ(Load()->choice.temperature, 2);
}

TEST_F(DecisionProfileTest, OptionsGoBeforeFiles) {
  Write("skein.decisions.json",
        R"({"version": 1, "choice": {"reading": "words+calibrated", "temperature": 2}})");
  reading_ = NamedReading{.reading = Reading::kLetters, .permuted = true};
  Result<DecisionProfile> profile = Load();
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  for (const DecisionMethod& method : {profile->predicate, profile->choice, profile->score}) {
    EXPECT_EQ(method.reading, Reading::kLetters);
    EXPECT_TRUE(method.permuted);
  }
  // A temperature counts only for the reading that it was fitted with.
  EXPECT_EQ(profile->choice.temperature, 1);
}

TEST_F(DecisionProfileTest, WrongFilesAreRefusedByName) {
  for (const char* wrong :
       {R"({"version": 2})", R"({})", R"([])", R"({"version": 1, "choice": {"reading": "x"}})",
        R"({"version": 1, "score": {"temperature": 0}})",
        R"({"version": 1, "score": {"offset": 1}})",
        R"({"version": 1, "predicate": {"offset": 101}})",
        R"({"version": 1, "score": {"prompt": 3}})", R"({"version": 1, "predicate": 3})"}) {
    Write("skein.decisions.json", wrong);
    const Result<DecisionProfile> profile = Load();
    ASSERT_FALSE(profile.ok()) << wrong;
    EXPECT_NE(profile.status().message().find("skein.decisions.json"), std::string::npos);
  }
  std::filesystem::remove(dir_ + "/skein.decisions.json");
  for (const char* value : {"0", "-1", "\"warm\"", "101"}) {
    Write("config.json", std::string("{\"decision_temperature\": ") + value + "}");
    const Result<DecisionProfile> profile = Load();
    ASSERT_FALSE(profile.ok()) << value;
    EXPECT_NE(profile.status().message().find("decision_temperature"), std::string::npos);
  }
}

}  // namespace
}  // namespace skein
