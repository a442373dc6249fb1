#include "io/model_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ModelDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("skein_hub_" + std::to_string(getpid()));
    AddModel("a", "models--org--name", "abc123\n", "abc123");
    AddModel("b", "models--org--name", "def456", "def456");
    AddModel("b", "models--org--broken", "gone", "other");
    AddModel("b", "models--evil--ref", "../../../..", "x");
    AddModel("b", "models--gpt2", "r1", "r1");
    fs::create_directories(root_ / "b/models--no--refs/snapshots/x");
  }
  void TearDown() override { fs::remove_all(root_); }
  void AddModel(const std::string& cache, const std::string& folder, const std::string& ref,
                const std::string& snapshot) {
    fs::create_directories(root_ / cache / folder / "refs");
    fs::create_directories(root_ / cache / folder / "snapshots" / snapshot);
    std::ofstream(root_ / cache / folder / "refs/main") << ref;
  }
  std::string Cache(const std::string& name) { return (root_ / name).string(); }

  fs::path root_;
};

TEST_F(ModelDirTest, ADirectoryIsItself) {
  EXPECT_EQ(ResolveModelDir(Cache("a"), {}).value(), Cache("a"));
}

TEST_F(ModelDirTest, FindsTheRevisionOfMainInTheFirstCache) {
  const std::vector<std::string> caches = {Cache("none"), Cache("a"), Cache("b")};
  EXPECT_EQ(ResolveModelDir("org/name", caches).value(),
            Cache("a") + "/models--org--name/snapshots/abc123");
  EXPECT_EQ(ResolveModelDir("gpt2", caches).value(), Cache("b") + "/models--gpt2/snapshots/r1");
}

TEST_F(ModelDirTest, SaysWhereItLooked) {
  const std::vector<std::string> caches = {Cache("a"), Cache("b")};
  const Status status = ResolveModelDir("org/other", caches).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(Cache("a") + "/models--org--other"),
                                      HasSubstr(Cache("b") + "/models--org--other")));
  EXPECT_THAT(ResolveModelDir("org/broken", caches).status().message(), HasSubstr("'gone'"));
  EXPECT_THAT(ResolveModelDir("no/refs", caches).status().message(), HasSubstr("refs/main"));
}

TEST_F(ModelDirTest, LeadsNowhereElse) {
  for (const char* model :
       {"../x", "org/../../x", "/none/of/this", "a/b/c", "", "org/", "org/.."}) {
    EXPECT_EQ(ResolveModelDir(model, {Cache("b")}).status().code(), StatusCode::kNotFound) << model;
  }
  EXPECT_FALSE(ResolveModelDir("evil/ref", {Cache("b")}).ok());
}

TEST_F(ModelDirTest, CachesFromTheEnvironment) {
  for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
  EXPECT_TRUE(HubCacheDirs().empty());
  setenv("HOME", "/h", 1);
  setenv("HF_HOME", "/hf", 1);
  setenv("HF_HUB_CACHE", "/cache", 1);
  EXPECT_THAT(HubCacheDirs(),
              ::testing::ElementsAre("/cache", "/hf/hub", "/h/.cache/huggingface/hub"));
}

}  // namespace
}  // namespace skein
