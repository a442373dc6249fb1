#include "apps/decision_temperature.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace skein {
namespace {

class DecisionTemperatureTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/skein-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  Result<float> Load(const std::string& config) {
    std::ofstream(dir_ + "/config.json") << config;
    return LoadDecisionTemperature(dir_);
  }

  std::string dir_;
};

TEST_F(DecisionTemperatureTest, ReadsConfig) {
  EXPECT_EQ(Load("{\"decision_temperature\": 1.5}").value(), 1.5f);
  EXPECT_EQ(Load("{\"hidden_size\": 8}").value(), 1.0f);
}

TEST_F(DecisionTemperatureTest, RefusesWhatIsNoTemperature) {
  for (const char* value : {"0", "-1", "\"warm\"", "101"}) {
    const auto read = Load(std::string("{\"decision_temperature\": ") + value + "}");
    ASSERT_FALSE(read.ok()) << value;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(read.status().message().find("decision_temperature"), std::string::npos);
  }
  EXPECT_FALSE(Load("[]").ok());
}

}  // namespace
}  // namespace skein
