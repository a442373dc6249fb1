#include "apps/decide/answer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace skein {
namespace {

using ::testing::HasSubstr;

class AnswerFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = ::testing::TempDir() + "skein_answers_" + std::to_string(getpid());
    std::filesystem::create_directories(dir_);
    path_ = dir_ + "/out.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Write(const std::string& text) { std::ofstream(path_) << text; }
  std::string Text() {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  std::string dir_, path_;
};

TEST_F(AnswerFileTest, GoesOnBehindItsOwnLines) {
  {
    auto file = AnswerFile::Open(path_, "a");
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->num_lines(), 0);
    EXPECT_TRUE(file->Append("1\n2\n").ok());
    EXPECT_TRUE(file->Append("{\"half").ok());
  }
  auto file = AnswerFile::Open(path_, "a");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->num_lines(), 2);
  EXPECT_TRUE(file->Append("3\n").ok());
  EXPECT_EQ(Text(), "1\n2\n3\n");
}

TEST_F(AnswerFileTest, LeavesForeignFilesAlone) {
  Write("a letter without an end");
  const Status status = AnswerFile::Open(path_, "a").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("holds something else"));
  EXPECT_EQ(Text(), "a letter without an end");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".skein"));
}

TEST_F(AnswerFileTest, MixesNoAnswers) {
  EXPECT_TRUE(AnswerFile::Open(path_, "a")->Append("1\n").ok());
  const Status status = AnswerFile::Open(path_, "b").status();
  EXPECT_THAT(status.message(), HasSubstr("other questions or of another model"));
  EXPECT_EQ(Text(), "1\n");
}

TEST_F(AnswerFileTest, HasOneWriter) {
  auto first = AnswerFile::Open(path_, "a");
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(AnswerFile::Open(path_, "a").status().message(), HasSubstr("another process"));
}

TEST_F(AnswerFileTest, AFullDiskIsAnError) {
  auto full = AnswerFile::Open("/dev/full", "a");
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_FALSE(full->Append("1\n").ok());
  EXPECT_FALSE(AnswerFile::Open(dir_ + "/nowhere/out", "a").ok());
}

}  // namespace
}  // namespace skein
