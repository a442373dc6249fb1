#include "text/encode_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "testing/own_tokenizer.h"

namespace skein {
namespace {

using testing::LoadOwnTokenizer;

TEST(EncodeBatchTest, EqualsOneByOne) {
  const auto tokenizer = LoadOwnTokenizer("llama3-style");
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) {
    texts.push_back("Text number " + std::to_string(i) + ": caf\u00e9 and <|eot_id|> " +
                    std::string(i, 'a'));
  }
  texts.emplace_back();
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  for (const int num_threads : {1, 3}) {
    ThreadTeam team(num_threads);
    for (int round = 0; round < 3; ++round) {
      std::vector<std::vector<TokenId>> ids;
      ASSERT_TRUE(EncodeBatch(*tokenizer, views, round == 0, &team, &ids).ok());
      ASSERT_EQ(ids.size(), texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        std::vector<TokenId> want;
        ASSERT_TRUE(tokenizer->Encode(texts[i], round == 0, &want).ok());
        EXPECT_EQ(ids[i], want) << texts[i];
      }
    }
  }
}

TEST(EncodeBatchTest, OneBadTextFailsTheBatch) {
  const auto tokenizer = LoadOwnTokenizer("llama3-style");
  ThreadTeam team(2);
  std::vector<std::vector<TokenId>> ids;
  const std::string_view texts[] = {"good", "\xFF", "good"};
  EXPECT_EQ(EncodeBatch(*tokenizer, texts, false, &team, &ids).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(ids.empty());
  EXPECT_TRUE(EncodeBatch(*tokenizer, {}, false, &team, &ids).ok());
}

}  // namespace
}  // namespace skein
