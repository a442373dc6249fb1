#include "apps/model/model_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "apps/model/file_hash.h"
#include "apps/model/run_program.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Sets an environment variable; the destructor restores it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class ModelCacheTest : public ::testing::Test {
 protected:
  ModelCacheTest()
      : root_(fs::temp_directory_path() /
              ("skein_cache_" + std::to_string(getpid()) +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        cache_("SKEIN_CACHE", (root_ / "cache").string()),
        data_("SKEIN_DATA_DIR", (root_ / "data").string()) {
    fs::create_directories(root_);
  }
  ~ModelCacheTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text = "") {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
  ScopedVariable cache_, data_;
};

TEST_F(ModelCacheTest, CacheDirByVariables) {
  EXPECT_EQ(CacheDir().value(), (root_ / "cache").string());
  const ScopedVariable none("SKEIN_CACHE", ""), home("HOME", "/home/x");
  {
    const ScopedVariable xdg("XDG_CACHE_HOME", "/xdg");
    EXPECT_EQ(CacheDir().value(), "/xdg/skein");
  }
  const ScopedVariable xdg("XDG_CACHE_HOME", "");
  EXPECT_EQ(CacheDir().value(), "/home/x/.cache/skein");
  const ScopedVariable no_home("HOME", "");
  EXPECT_THAT(CacheDir().status().message(), HasSubstr("SKEIN_CACHE"));
}

TEST_F(ModelCacheTest, AKnownModelIsFoundOnceItIsFetched) {
  const Status missing = FindModelDir("smollm2").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("skein model fetch smollm2"));
  Write("cache/models/smollm2/config.json", "{}");
  EXPECT_EQ(FindModelDir("smollm2").value(), (root_ / "cache/models/smollm2").string());
  EXPECT_EQ(FindModelDir(root_.string()).value(), root_.string());
  EXPECT_THAT(FindModelDir("no such model").status().message(),
              AllOf(HasSubstr("no directory"), Not(HasSubstr("did you mean"))));
  const Status misspelled = FindModelDir("smolm2").status();
  EXPECT_THAT(misspelled.message(), EndsWith("; did you mean 'smollm2'?"));
  EXPECT_EQ(misspelled.param(), "model");
}

TEST_F(ModelCacheTest, AGgufFileThatCannotBeReadIsNamed) {
  Write("x/model.gguf");
  for (const char* model : {"x/model.gguf", "x"}) {
    const Status status = FindModelDir((root_ / model).string()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr((root_ / "x/model.gguf").string()));
  }
  Write("x/config.json", "{}");
  EXPECT_TRUE(FindModelDir((root_ / "x").string()).ok());
}

TEST_F(ModelCacheTest, AFetchedModelHasItsAdapterWhereThatLies) {
  EXPECT_FALSE(FindKnownModel("other"));
  EXPECT_EQ(DefaultKnownModel().name, "smollm2");
  const std::string model = (root_ / "cache/models/smollm2").string();
  Write("cache/models/smollm2/config.json", "{}");
  Write("elsewhere/config.json", "{}");
  EXPECT_EQ(DecisionAdapterOf(model), "");
  Write("data/smollm2-decide/adapter_config.json", "{}");
  EXPECT_EQ(DecisionAdapterOf(model), (root_ / "data/smollm2-decide").string());
  EXPECT_EQ(DecisionAdapterOf(model + "/"), (root_ / "data/smollm2-decide").string());
  EXPECT_EQ(DecisionAdapterOf((root_ / "elsewhere").string()), "");
}

TEST_F(ModelCacheTest, TheDefaultIsWhatIsFetched) {
  EXPECT_THAT(FetchedDefaultModel().status().message(), HasSubstr("skein model fetch smollm2"));
  EXPECT_THAT(FetchedDefaultModel().status().message(), HasSubstr("MODEL=DIR"));
  Write("cache/models/smollm2/config.json", "{}");
  EXPECT_EQ(FetchedDefaultModel().value(), "smollm2");
}

TEST_F(ModelCacheTest, HashOfAFile) {
  Write("abc", "abc");  // FIPS 180-2, appendix B.1
  EXPECT_EQ(Sha256OfFile((root_ / "abc").string()).value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256OfFile((root_ / "none").string()).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(Sha256OfFile(root_.string()).ok());
}

TEST_F(ModelCacheTest, ProgramsTellWhyTheyFail) {
  const std::string log = (root_ / "log").string();
  EXPECT_TRUE(RunProgram({{"true"}, log}).ok());
  const Status failed = RunProgram({{"sh", "-c", "echo first >&2; echo last >&2; exit 3"}, log});
  EXPECT_EQ(failed.code(), StatusCode::kUnavailable);
  EXPECT_EQ(failed.message(), "last");
  EXPECT_EQ(RunProgram({{"false"}, log}).message(), "false ends with status 1");
  EXPECT_THAT(RunProgram({{"skein-no-such-program"}, log}).message(),
              HasSubstr("cannot run skein-no-such-program"));
}

}  // namespace
}  // namespace skein
