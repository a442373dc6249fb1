#include "model/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace skein {
namespace {

using ::testing::HasSubstr;

class PoolingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::temp_directory_path() / ("skein_pooling_" + std::to_string(getpid()));
    std::filesystem::create_directories(dir_ / "1_Pooling");
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  Result<std::optional<Pooling>> Load(const std::string& config) {
    std::ofstream(dir_ / "1_Pooling/config.json") << config;
    return LoadPooling(dir_.string());
  }
  void ExpectUnsupported(const std::string& config, const std::string& part) {
    const Status status = Load(config).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << config;
    EXPECT_THAT(status.message(), HasSubstr(part));
  }

  std::filesystem::path dir_;
};

TEST_F(PoolingTest, OlderAndNewerFiles) {
  EXPECT_EQ(LoadPooling(dir_.string()).value(), std::nullopt);
  EXPECT_EQ(Load(R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false})").value(),
            Pooling::kMean);
  EXPECT_EQ(Load(R"({"pooling_mode_cls_token": true})").value(), Pooling::kCls);
  EXPECT_EQ(Load(R"({"pooling_mode_lasttoken": true, "include_prompt": true})").value(),
            Pooling::kLast);
  EXPECT_EQ(Load(R"({"pooling_mode": "mean", "include_prompt": true})").value(), Pooling::kMean);
  EXPECT_EQ(Load(R"({"pooling_mode": "cls"})").value(), Pooling::kCls);
  EXPECT_EQ(Load(R"({"pooling_mode": "lasttoken"})").value(), Pooling::kLast);
}

TEST_F(PoolingTest, RefusesOtherModes) {
  ExpectUnsupported("{}", "exactly one of");
  ExpectUnsupported(R"({"pooling_mode_max_tokens": true})", "exactly one of");
  ExpectUnsupported(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})",
                    "exactly one of");
  ExpectUnsupported(R"({"pooling_mode": "max"})", "'pooling_mode' is 'max'");
  ExpectUnsupported(R"({"pooling_mode": "mean", "include_prompt": false})",
                    "'include_prompt' is false");
  EXPECT_EQ(Load(R"({"pooling_mode": ["cls", "mean"]})").status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace skein
