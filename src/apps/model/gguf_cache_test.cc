#include "apps/model/gguf_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "testing/tiny_gguf.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class GgufCacheTest : public ::testing::Test {
 protected:
  GgufCacheTest()
      : root_(fs::temp_directory_path() /
              ("skein_gguf_cache_" + std::to_string(getpid()) +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(root_);
    root_ = fs::canonical(root_);
  }
  ~GgufCacheTest() override { fs::remove_all(root_); }

  std::string WriteGguf(const std::string& name) {
    std::ofstream(root_ / name, std::ios::binary) << testing::TinyGguf().Build();
    return root_ / name;
  }
  std::string Describe(const std::string& file) {
    const Result<std::string> dir = DescribeInCache(file, root_ / "cache");
    EXPECT_TRUE(dir.ok()) << dir.status().message();
    return dir.ok() ? dir.value() : "";
  }
  // A description of a file that is gone.
  std::string LeftOver(const std::string& name) {
    const std::string file = WriteGguf(name), dir = Describe(file);
    fs::remove(file);
    return dir;
  }
  // All that lies in the cache beside the lock.
  std::vector<std::string> Directories() {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(root_ / "cache/gguf")) {
      if (entry.path().filename() != ".lock") names.push_back(entry.path());
    }
    return names;
  }

  fs::path root_;
};

TEST_F(GgufCacheTest, AFileIsDescribedUntilItChanges) {
  const std::string file = WriteGguf("m.gguf"), dir = Describe(file);
  EXPECT_EQ(fs::read_symlink(dir + "/model.gguf"), file);
  EXPECT_TRUE(fs::exists(dir + "/config.json"));
  fs::remove(dir + "/config.json");
  EXPECT_EQ(Describe(file), dir);
  EXPECT_FALSE(fs::exists(dir + "/config.json")) << "it was made again";
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_EQ(Describe(file), dir);
  EXPECT_TRUE(fs::exists(dir + "/config.json"));
  EXPECT_THAT(Directories(), ElementsAre(dir));
}

TEST_F(GgufCacheTest, DescriptionsOfFilesThatAreGoneAreRemoved) {
  const std::string kept = Describe(WriteGguf("kept.gguf"));
  const std::string gone = LeftOver("gone.gguf");
  EXPECT_EQ(Describe(root_ / "kept.gguf"), kept);
  EXPECT_TRUE(fs::exists(gone)) << "only with a new description";
  const std::string made = Describe(WriteGguf("made.gguf"));
  EXPECT_THAT(Directories(), UnorderedElementsAre(kept, made));
}

TEST_F(GgufCacheTest, NothingElseIsRemoved) {
  const std::string cache = root_ / "cache/gguf";
  // Each is a description of a file that is gone but for one difference.
  std::vector<std::string> kept;
  for (const char* name : {"profile", "edited", "no-mark", "other-mark", "no-link", "other-name"}) {
    kept.push_back(LeftOver(name + std::string(".gguf")));
    WriteGguf(name + std::string(".gguf"));  // for now
  }
  const auto later = fs::file_time_type::clock::now() + std::chrono::seconds(2);
  std::ofstream(kept[0] + "/skein.decisions.json") << "{}";
  fs::last_write_time(kept[0] + "/skein.decisions.json", later);
  fs::last_write_time(kept[1] + "/config.json", later);
  fs::remove(kept[2] + "/skein-gguf.txt");
  std::ofstream(kept[3] + "/skein-gguf.txt") << "/another/file\n";
  fs::remove(kept[4] + "/model.gguf");
  fs::rename(kept[5], cache + "/other");
  kept[5] = cache + "/other";
  // One is a link to a directory elsewhere, one a file.
  kept.push_back(LeftOver("elsewhere.gguf"));
  WriteGguf("elsewhere.gguf");
  fs::rename(kept.back(), root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", kept.back());
  kept.push_back(cache + "/note");
  std::ofstream(kept.back()) << "a note";
  for (const fs::directory_entry& entry : fs::directory_iterator(root_)) {
    if (entry.path().extension() == ".gguf") fs::remove(entry.path());
  }
  kept.push_back(Describe(WriteGguf("made.gguf")));
  EXPECT_THAT(Directories(), ::testing::UnorderedElementsAreArray(kept));
}

TEST_F(GgufCacheTest, ProcessesDoNotDisturbEachOther) {
  constexpr int kProcesses = 4, kRounds = 10;
  const std::string shared = WriteGguf("shared.gguf");
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    bool ok = true;
    for (int round = 0; round < kRounds; ++round) {
      // Its own file comes and goes; the other one changes, so that all describe it again.
      const std::string own = "own" + std::to_string(process) + ".gguf";
      const std::string dir = Describe(WriteGguf(own));
      ok = ok && fs::exists(dir + "/config.json") && fs::exists(dir + "/tokenizer.json");
      fs::remove(root_ / own);
      ok = ok && !Describe(shared).empty();
      if (process == 0) fs::last_write_time(shared, fs::file_time_type::clock::now());
    }
    _exit(ok ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const std::string made = Describe(WriteGguf("made.gguf"));
  EXPECT_THAT(Directories(), UnorderedElementsAre(Describe(shared), made));
}

}  // namespace
}  // namespace skein
