#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "testing/own_tokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer/models/unigram.h"
#include "text/tokenizer/models/wordpiece.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LoadOwnTokenizer;

Encoding Encode(const Tokenizer& tokenizer, const EncodeInput& input,
                const EncodeOptions& options) {
  Encoding encoding;
  const Status status = tokenizer.EncodeFull(input, options, &encoding);
  EXPECT_TRUE(status.ok()) << status.message();
  return encoding;
}

EncodeOptions Cut(size_t max_length, Truncation::Strategy strategy,
                  Truncation::Direction direction = Truncation::Direction::kRight) {
  return {true, false, Truncation{max_length, strategy, direction}};
}

using Strategy = Truncation::Strategy;

TEST(EncodeFullTest, PairOfBert) {
  const auto bert = LoadOwnTokenizer("bert-uncased-style");
  const Encoding got = Encode(*bert, {"The time", "A naïve way"}, {true, true, std::nullopt});
  const auto id = [&](const char* token) { return bert->TokenToId(token).value(); };
  EXPECT_THAT(got.ids, ElementsAre(id("[CLS]"), id("the"), id("time"), id("[SEP]"), id("a"),
                                   id("naive"), id("way"), id("[SEP]")));
  EXPECT_THAT(got.type_ids, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(got.is_special, ElementsAre(1, 0, 0, 1, 0, 0, 0, 1));
  using O = TokenOffsets;
  EXPECT_THAT(got.offsets,
              ElementsAre(O{0, 0}, O{0, 3}, O{4, 8}, O{0, 0}, O{0, 1}, O{2, 7}, O{8, 11},
                          O{0, 0}));  // offsets are code points, counted in each text
  EXPECT_EQ(bert->Decode(got.ids, true), "the time a naive way");
}

TEST(EncodeFullTest, TruncationKeepsWhatItSays) {
  const auto bert = LoadOwnTokenizer("bert-uncased-style");
  const std::string five = "the a of to and", two = "in is";
  const auto lengths = [&](std::string_view first, std::string_view second,
                           const EncodeOptions& options) {
    const Encoding got = Encode(*bert, {first, second}, options);
    size_t num[2] = {0, 0};
    for (size_t i = 0; i < got.ids.size(); ++i) num[got.type_ids[i]] += !got.is_special[i];
    return std::make_pair(num[0], num[1]);
  };
  using P = std::pair<size_t, size_t>;
  EXPECT_EQ(lengths(five, two, Cut(10, Strategy::kLongestFirst)), P(5, 2));
  EXPECT_EQ(lengths(five, two, Cut(9, Strategy::kLongestFirst)), P(4, 2));
  EXPECT_EQ(lengths(five, five, Cut(10, Strategy::kLongestFirst)), P(3, 4));
  EXPECT_EQ(lengths(five, two, Cut(6, Strategy::kLongestFirst)), P(2, 1));
  EXPECT_EQ(lengths(five, two, Cut(6, Strategy::kOnlyFirst)), P(1, 2));
  EXPECT_EQ(lengths(two, five, Cut(6, Strategy::kOnlySecond)), P(2, 1));
  EXPECT_EQ(lengths(five, two, Cut(3, Strategy::kOnlyFirst)), P(0, 0));  // only the special tokens

  const Encoding left =
      Encode(*bert, {five, {}}, Cut(4, Strategy::kLongestFirst, Truncation::Direction::kLeft));
  EXPECT_EQ(bert->Decode(left.ids, true), "to and");
}

TEST(EncodeFullTest, ImpossibleTruncationIsAnError) {
  const auto bert = LoadOwnTokenizer("bert-uncased-style");
  const auto refused = [&](const EncodeInput& input, const EncodeOptions& options,
                           const char* part) {
    Encoding encoding;
    const Status status = bert->EncodeFull(input, options, &encoding);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(part));
  };
  refused({"the", "a"}, Cut(2, Strategy::kLongestFirst), "3 special tokens");
  refused({"the a of", {}}, Cut(3, Strategy::kOnlySecond), "without a second text");
  refused({"the a of", "in"}, Cut(4, Strategy::kOnlySecond), "has 1 tokens");
  for (const bool with_offsets : {false, true}) {
    refused({"\xff", {}}, {true, with_offsets, std::nullopt}, "UTF-8");
    refused({"a", "a\xc3"}, {true, with_offsets, std::nullopt}, "UTF-8");
  }
}

TEST(EncodeFullTest, EmptyPairKeepsItsSpecialTokens) {
  const auto tokenizer = LoadOwnTokenizer("xlm-roberta-style");
  EXPECT_EQ(Encode(*tokenizer, {"", ""}, {true, true, std::nullopt}).ids.size(), 4u);
}

// Texts of 200 kB, in one piece and in many pieces, reveal quadratic algorithms.
TEST(EncodeFullTest, LongTexts) {
  for (const char* name : {"bert-uncased-style", "xlm-roberta-style", "t5-style", "llama3-style"}) {
    const auto tokenizer = LoadOwnTokenizer(name);
    for (const char* unit : {"a", "the ", " ", "世", "e\xCC\x81", "x y\n"}) {
      std::string text;
      while (text.size() < 200'000) text += unit;
      const Encoding full = Encode(*tokenizer, {text, {}}, {false, true, std::nullopt});
      std::vector<TokenId> ids;
      ASSERT_TRUE(tokenizer->Encode(text, false, &ids).ok());
      EXPECT_EQ(full.ids, ids) << name << " '" << unit << "'";
    }
  }
}

// Older files have no type of the model.
TEST(EncodeFullTest, ModelsWithoutTypeAreRecognized) {
  const std::string folder = ::testing::TempDir() + "skein_untyped_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  for (const char* name : {"bert-cased-style", "t5-style", "wordlevel-parts", "llama3-style"}) {
    const auto typed = LoadOwnTokenizer(name);
    auto json = nlohmann::json::parse(std::ifstream(
        std::string(SKEIN_SOURCE_DIR) + "/tests/data/tokenizers/" + name + "/tokenizer.json"));
    ASSERT_EQ(json["model"].erase("type"), 1u);
    std::ofstream(folder + "/tokenizer.json") << json;
    const auto untyped = Tokenizer::Load(folder);
    ASSERT_TRUE(untyped.ok()) << name << ": " << untyped.status().message();
    const EncodeInput input{"the time - and 12 ways", {}};
    const EncodeOptions options{true, true, std::nullopt};
    EXPECT_EQ(Encode(*untyped.value(), input, options).ids, Encode(*typed, input, options).ids);
  }
  std::filesystem::remove_all(folder);
}

std::vector<TokenId> Ids(const Model& model, std::string_view piece) {
  std::vector<PieceToken> tokens;
  const Status status = model.Tokenize(piece, &tokens);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<TokenId> ids;
  for (const PieceToken& token : tokens) ids.push_back(token.id);
  return ids;
}

TEST(ModelTest, WordPieceTakesTheLongest) {
  auto vocabulary = Vocabulary::Create(
      {{"[U]", 0}, {"un", 1}, {"##aff", 2}, {"##able", 3}, {"##a", 4}, {"u", 5}, {"é", 6}});
  auto model = WordPiece::Create(std::move(vocabulary).value(), {"[U]", "##", 9});
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(Ids(**model, "unaffable"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(**model, "unaa"), ElementsAre(1, 4, 4));
  EXPECT_THAT(Ids(**model, "unaffx"), ElementsAre(0));      // the whole word is unknown
  EXPECT_THAT(Ids(**model, "unaffablea"), ElementsAre(0));  // ten characters are too many
  EXPECT_THAT(Ids(**model, "é"), ElementsAre(6));
  std::vector<PieceToken> tokens;
  ASSERT_TRUE((*model)->Tokenize("unaff", &tokens).ok());
  EXPECT_EQ(tokens[1].begin, 2u);
  EXPECT_EQ(tokens[1].end, 5u);
}

TEST(ModelTest, UnigramFindsTheBestSum) {
  Unigram::Spec spec{{"<unk>", "a", "b", "ab", "abc", "c"}, {0, -1, -1, -1.5, -9, -2}, 0, false};
  auto model = Unigram::Create(spec);
  ASSERT_TRUE(model.ok());
  EXPECT_THAT(Ids(**model, "abc"), ElementsAre(3, 5));
  EXPECT_THAT(Ids(**model, "ba"), ElementsAre(2, 1));
  EXPECT_THAT(Ids(**model, "axyb"),
              ElementsAre(1, 0, 2));  // adjacent unknown characters become one token
  spec.unk_id.reset();
  model = Unigram::Create(spec);
  std::vector<PieceToken> tokens;
  EXPECT_EQ((*model)->Tokenize("axb", &tokens).code(), StatusCode::kInvalidArgument);
}

TEST(ModelTest, UnigramFallsBackOnBytes) {
  Unigram::Spec spec{{"<unk>", "a", "<0xC3>", "<0xA9>"}, {0, -1, -5, -5}, 0, true};
  auto model = Unigram::Create(std::move(spec));
  ASSERT_TRUE(model.ok());
  std::vector<PieceToken> tokens;
  ASSERT_TRUE((*model)->Tokenize("aé", &tokens).ok());
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[1].id, 2);
  EXPECT_EQ(tokens[2].id, 3);
  EXPECT_EQ(tokens[2].begin, 1u);  // the token of each byte stands for the whole character
  EXPECT_EQ(tokens[2].end, 3u);
  EXPECT_THAT(Ids(**model, "ü"), ElementsAre(0));  // one of its bytes is not in the vocabulary
}

TEST(ModelTest, WordLevelWithoutUnknown) {
  const WordLevel model(Vocabulary::Create({{"a", 0}}).value(), std::nullopt);
  EXPECT_THAT(Ids(model, "a"), ElementsAre(0));
  std::vector<PieceToken> tokens;
  EXPECT_THAT(model.Tokenize("b", &tokens).message(), HasSubstr("'b'"));
}

}  // namespace
}  // namespace skein
