#include "bench/quality/quality_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace skein {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json ResultOf(const std::string& model, const std::string& method, double accuracy) {
  Json figures = {{"accuracy", accuracy}, {"brier", 0.25}, {"brier_calibrated", 0.125}};
  Json chosen = {{"type", "choice"}, {"method", method}, {"chosen", true}, {"figures", figures}};
  Json other = chosen;
  other["chosen"] = false;
  other["method"] = "unwanted";
  return {{"model_id", model}, {"data", "items"}, {"methods", {other, chosen}}};
}

TEST(QualityCompareTest, ChosenMethodsStandSideBySide) {
  Json far = ResultOf("chat", "words/cue", 0.5);
  far["data"] = "elsewhere";
  const std::string text = CompareTables({ResultOf("triage", "head", 0.875), far});
  EXPECT_THAT(text, HasSubstr("choice, side by side"));
  EXPECT_THAT(text, HasSubstr("triage"));
  EXPECT_THAT(text, HasSubstr("0.875"));
  EXPECT_THAT(text, HasSubstr("0.250 > 0.125"));
  EXPECT_THAT(text, HasSubstr("words/cue"));
  EXPECT_THAT(text, Not(HasSubstr("unwanted")));
  EXPECT_THAT(text, HasSubstr("chat was asked about other items: elsewhere"));
}

TEST(QualityCompareTest, OtherFilesAreRefusedByName) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "quality_compare.json";
  for (const char* text : {"{}", R"({"model_id": "a", "methods": [1]})", R"({"methods": []})"}) {
    std::ofstream(path) << text;
    const auto result = LoadQualityResult(path.string());
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.status().message(), HasSubstr(path.string()));
  }
  std::ofstream(path) << DumpJson(ResultOf("a", "head", 1));
  EXPECT_TRUE(LoadQualityResult(path.string()).ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace skein
