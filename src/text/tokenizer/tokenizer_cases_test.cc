// Tests every case of the shared folder and of tests/data/tokenizers: ids, ids with special tokens,
// text, and streamed text.
#include <gtest/gtest.h>

#include <climits>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/interrupt/work_pause.h"
#include "testing/shared.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

struct Suite {
  const char* folder;
  const char* cases;
};

class TokenizerCasesTest : public ::testing::TestWithParam<Suite> {};

std::vector<TokenId> Encode(const Tokenizer& tokenizer, const std::string& text, bool special) {
  std::vector<TokenId> ids;
  const Status status = tokenizer.Encode(text, special, &ids);
  EXPECT_TRUE(status.ok()) << status.message();
  return ids;
}

std::string StreamAll(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip) {
  StreamDecoder decoder(&tokenizer, skip);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = decoder.Push(id);
    EXPECT_TRUE(IsValidUtf8(piece));
    text += piece;
  }
  return text + decoder.Finish();
}

// `want` has [id, type id, begin, end] for each token of the pair of `text` and its reverse (its
// code points in reverse order).
void ExpectPair(const Tokenizer& tokenizer, const std::string& text, const nlohmann::json& want) {
  std::string backwards;
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    NextCodePoint(text, &pos);
    backwards.insert(0, text, begin, pos - begin);
  }
  const EncodeInput input{text, backwards};
  Encoding full, plain;
  Status status = tokenizer.EncodeFull(input, {true, true, std::nullopt}, &full);
  ASSERT_TRUE(status.ok()) << status.message();
  nlohmann::json got = nlohmann::json::array();
  for (size_t i = 0; i < full.ids.size(); ++i) {
    got.push_back({full.ids[i], full.type_ids[i], full.offsets[i].begin, full.offsets[i].end});
  }
  EXPECT_EQ(got, want) << text;
  status = tokenizer.EncodeFull(input, {true, false, std::nullopt}, &plain);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(plain.ids, full.ids) << text;
  EXPECT_EQ(plain.type_ids, full.type_ids);
  EXPECT_EQ(plain.is_special, full.is_special);
  EXPECT_TRUE(plain.offsets.empty());
}

// Whether a folder belongs to the repository (its name starts with "tests/"). The others lie in the
// shared folder.
bool IsOwn(const Suite& suite) { return std::string_view(suite.folder).starts_with("tests/"); }
std::string FolderOf(const Suite& suite) {
  return (IsOwn(suite) ? std::string(SKEIN_SOURCE_DIR) : testing::SharedDir()) + "/" + suite.folder;
}

TEST_P(TokenizerCasesTest, CasesAgree) {
  if (!IsOwn(GetParam())) SKEIN_REQUIRE_SHARED();
  const std::string folder = FolderOf(GetParam());
  auto tokenizer = Tokenizer::Load(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const Tokenizer& t = **tokenizer;
  std::ifstream file(folder + "/" + GetParam().cases);
  int num_cases = 0;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    const std::string text = json["text"];
    const std::vector<TokenId> ids = json["ids"];
    EXPECT_EQ(Encode(t, text, false), ids) << line;
    if (json.contains("ids_special")) {
      EXPECT_EQ(Encode(t, text, true), json["ids_special"].get<std::vector<TokenId>>()) << line;
    }
    if (json.contains("decoded")) {
      EXPECT_EQ(t.Decode(ids, false), json["decoded"].get<std::string>()) << line;
      EXPECT_EQ(StreamAll(t, ids, false), json["decoded"].get<std::string>()) << line;
    }
    if (json.contains("pair")) ExpectPair(t, text, json["pair"]);
    ++num_cases;
  }
  EXPECT_GE(num_cases, 23);
}

TEST_P(TokenizerCasesTest, StreamsRandomIdsAsDecoded) {
  if (!IsOwn(GetParam())) SKEIN_REQUIRE_SHARED();
  auto tokenizer = Tokenizer::Load(FolderOf(GetParam()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const Tokenizer& t = **tokenizer;
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  // Some ids lie outside the vocabulary, at both ends. Low ids (bytes) are drawn more often.
  std::uniform_int_distribution<TokenId> any(-2, t.vocab_size() + 2), low(0, 300);
  for (int round = 0; round < 300; ++round) {
    std::vector<TokenId> ids(random() % 40);
    for (TokenId& id : ids) id = random() % 2 ? any(random) : low(random);
    const bool skip = round % 2 == 0;
    const std::string text = t.Decode(ids, skip);
    EXPECT_TRUE(IsValidUtf8(text));
    EXPECT_EQ(StreamAll(t, ids, skip), text);
  }
}

// Lets `num_allowed` slices pass.
class CountingPause final : public WorkPause {
 public:
  explicit CountingPause(int num_allowed) : num_allowed_(num_allowed) {}
  bool GoOn() override { return ++num_asked_ <= num_allowed_; }
  int num_asked() const { return num_asked_; }

 private:
  const int num_allowed_;
  int num_asked_ = 0;
};

TEST_P(TokenizerCasesTest, LongTextsAreEncodedInSlices) {
  if (!IsOwn(GetParam())) SKEIN_REQUIRE_SHARED();
  const std::string folder = FolderOf(GetParam());
  auto tokenizer = Tokenizer::Load(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const Tokenizer& t = **tokenizer;
  std::ifstream file(folder + "/" + GetParam().cases);
  std::string once, text;
  for (std::string line; std::getline(file, line);) {
    once += nlohmann::json::parse(line)["text"].get<std::string>() + " ";
  }
  constexpr int kNumSlices = 10;
  while (text.size() < kNumSlices * SliceMeter::kSliceBytes) text += once;
  const std::vector<TokenId> ids = Encode(t, text, true);
  const auto encode_full = [&](Encoding* encoding) {
    return t.EncodeFull({text, std::nullopt}, {true, true, std::nullopt}, encoding);
  };
  CountingPause all(INT_MAX);
  {
    const PauseScope scope(&all);
    EXPECT_EQ(Encode(t, text, true), ids);
  }
  EXPECT_GE(all.num_asked(), kNumSlices / 2);
  CountingPause few(3), full_few(3);
  std::vector<TokenId> begun;
  Encoding encoding;
  {
    const PauseScope scope(&few);
    EXPECT_EQ(t.Encode(text, true, &begun).code(), StatusCode::kUnavailable);
  }
  {
    const PauseScope scope(&full_few);
    EXPECT_EQ(encode_full(&encoding).code(), StatusCode::kUnavailable);
  }
  EXPECT_LT(begun.size(), ids.size() / 2);
  // Each later loop asks at most once more: as many as there are steps, not slices.
  EXPECT_LE(few.num_asked(), 25);
  EXPECT_LE(full_few.num_asked(), 25);
}

// A text without any border inside, and one that is cut by added tokens alone.
TEST(LongTexts, OfOnePieceAndOfManyTokensAreEncodedInSlices) {
  auto tokenizer = Tokenizer::Load(std::string(SKEIN_SOURCE_DIR) + "/models/default");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  std::string tokens;
  while (tokens.size() < 10 * SliceMeter::kSliceBytes) tokens += "<|im_start|>ab";
  for (const std::string& text : {std::string(10 * SliceMeter::kSliceBytes, 'a'), tokens}) {
    CountingPause few(3);
    const PauseScope scope(&few);
    std::vector<TokenId> ids;
    EXPECT_EQ((*tokenizer)->Encode(text, false, &ids).code(), StatusCode::kUnavailable);
    EXPECT_LT(ids.size(), text.size() / 2);
    EXPECT_LE(few.num_asked(), 25);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, TokenizerCasesTest,
    ::testing::Values(
        Suite{"tokenizers/qwen3", "cases.jsonl"},
        Suite{"tokenizers/qwen3", "ggml_qwen2_cases.jsonl"},
        Suite{"tokenizers/qwen3", "chat_cases.jsonl"}, Suite{"tokenizers/gpt2", "cases.jsonl"},
        Suite{"tokenizers/gpt2", "ggml_cases.jsonl"}, Suite{"tokenizers/falcon", "cases.jsonl"},
        Suite{"tokenizers/falcon", "ggml_cases.jsonl"}, Suite{"tokenizers/gpt-neox", "cases.jsonl"},
        Suite{"tokenizers/gpt-neox", "ggml_cases.jsonl"},
        Suite{"models/stories260K", "tokenizer_cases.jsonl"},
        Suite{"tests/data/tokenizers/llama3-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/nemo-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/gemma-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/mistral-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/flags", "cases.jsonl"},
        Suite{"tests/data/tokenizers/deepseek-v3-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/deepseek-llm-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/starcoder-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/o200k-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/roberta-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/bert-uncased-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/bert-cased-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/mpnet-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/modernbert-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/mmbert-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/wordpiece-parts", "cases.jsonl"},
        Suite{"tests/data/tokenizers/wordlevel-parts", "cases.jsonl"},
        Suite{"tests/data/tokenizers/xlm-roberta-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/deberta-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/t5-style", "cases.jsonl"},
        Suite{"tests/data/tokenizers/unigram-bytes", "cases.jsonl"},
        Suite{"tests/data/tokenizers/bpe-words", "cases.jsonl"}));

}  // namespace
}  // namespace skein
