#include "bench/bench_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "bench/tokenizer_texts.h"
#include "server/json/json.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
const std::string kOwn = std::string(SKEIN_SOURCE_DIR) + "/tests/data/tokenizers/";

size_t NumChars(const std::string& text) {
  size_t count = 0;
  for (size_t pos = 0; pos < text.size(); ++count) NextCodePoint(text, &pos);
  return count;
}

TEST(TokenizerTextsTest, HaveTheLengthsTheySay) {
  const std::vector<TokenizerText> texts = TokenizerTexts();
  std::set<std::string> names;
  for (const TokenizerText& text : texts) {
    EXPECT_TRUE(IsValidUtf8(text.text)) << text.name;
    EXPECT_EQ(NumChars(text.text), text.num_chars) << text.name;
    EXPECT_THAT(text.name, HasSubstr("-" + std::to_string(text.num_chars)));
    EXPECT_TRUE(names.insert(text.name).second) << text.name;
  }
  const std::vector<TokenizerText> again = TokenizerTexts();
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_TRUE(texts[i].text == again[i].text);
  EXPECT_EQ(texts.size(), 7u + 2 * 10);
}

TEST(TokenizerTextsTest, DistinctProseRepeatsNoSentence) {
  const std::string text = DistinctProse(3, 200'000);
  std::set<std::string> sentences;
  size_t num_sentences = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = std::min(text.find_first_of(".?", pos), text.size() - 1) + 1;
    sentences.insert(text.substr(pos, end - pos));
    ++num_sentences;
    pos = end;
  }
  EXPECT_GT(num_sentences, 1000u);
  EXPECT_EQ(sentences.size(), num_sentences);
  EXPECT_NE(DistinctProse(1, 100), DistinctProse(2, 100));
}

TEST(BenchTokenizerTest, ResultHasEveryFigure) {
  const std::string dump = ::testing::TempDir() + "skein_texts_" + std::to_string(getpid());
  TokenizerBenchOptions options;
  options.dir = kOwn + "llama3-style";
  options.num_samples = 1;
  options.sample_us = 1;
  options.dump_texts = dump;
  auto result = RunTokenizerBench(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Json& json = result.value();
  EXPECT_EQ(json["gate"], "passed");
  EXPECT_GT(json["load_ms"], 0);
  EXPECT_GT(json["stream_decode_us"], 0);
  EXPECT_EQ(json["concurrent"]["threads"], 8);
  EXPECT_GT(json["concurrent"]["us_per_encode"], 0);
  ASSERT_EQ(json["encode"].size(), TokenizerTexts().size());
  ASSERT_EQ(json["decode"].size(), TokenizerTexts().size());
  for (const Json& row : json["encode"]) {
    EXPECT_GT(row["us"], 0);
    EXPECT_GT(row["tokens"], 0);
  }
  ASSERT_EQ(json["batch"].size(), 4u);
  EXPECT_EQ(json["batch"][3]["size"], 64);

  std::ifstream file(dump);
  size_t num_lines = 0;
  for (std::string line; std::getline(file, line); ++num_lines) {
    const Json entry = Json::parse(line);
    EXPECT_FALSE(entry["ids"].empty());
  }
  EXPECT_EQ(num_lines, TokenizerTexts().size() + 64 + 2);
  std::filesystem::remove(dump);
}

// A decoder that does not restore every space passes the checks, too.
TEST(BenchTokenizerTest, GateTakesOtherFamilies) {
  for (const char* name : {"mistral-style", "gemma-style", "nemo-style"}) {
    const auto tokenizer = Tokenizer::Load(kOwn + name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    const Status status = CheckTokenizer(*tokenizer.value(), kOwn + name);
    EXPECT_TRUE(status.ok()) << name << ": " << status.message();
  }
}

TEST(BenchTokenizerTest, NoFigureWithoutTheGate) {
  const std::string folder = ::testing::TempDir() + "skein_gate_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::filesystem::copy(kOwn + "llama3-style/tokenizer.json", folder + "/tokenizer.json");
  const auto run_with_case = [&](const std::string& line) {
    std::ofstream(folder + "/cases.jsonl") << line << '\n';
    TokenizerBenchOptions options;
    options.dir = folder;
    options.num_samples = 1;
    options.sample_us = 1;
    return RunTokenizerBench(options).status().message();
  };
  EXPECT_THAT(run_with_case(R"({"text": "a", "ids": [1, 2, 3]})"),
              HasSubstr("gate failed: ids of a known case differ: \"a\""));
  EXPECT_THAT(run_with_case(R"({"text": "", "ids": [], "ids_special": [77]})"),
              HasSubstr("ids with special tokens"));
  EXPECT_THAT(run_with_case(R"({"text": "", "ids": [], "decoded": "x"})"),
              HasSubstr("decoded differently"));
  EXPECT_THAT(run_with_case("3"), HasSubstr("not a case"));
  EXPECT_EQ(run_with_case(R"({"text": "", "ids": []})"), "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skein
