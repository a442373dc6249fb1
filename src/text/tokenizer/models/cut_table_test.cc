#include "text/tokenizer/models/cut_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "text/tokenizer/models/bpe.h"

namespace skein {
namespace {

TEST(CutTableTest, CutsWhereNoTokenReachesAcross) {
  CutTable table;
  // The second token crosses a border and has fewer than three bytes after it.
  for (const char* token : {"世界", "界\xE4", "abc", "éa", "你"}) table.Add(token);
  table.Finish();
  const auto cut = [&](std::string_view word) { return table.FindCut(word, 0); };
  EXPECT_EQ(cut("世界"), 6u);
  EXPECT_EQ(cut("世你"), 3u);
  EXPECT_EQ(cut("界世"), 6u);  // U+4E16 starts with E4
  EXPECT_EQ(cut("界éé"), 3u);
  EXPECT_EQ(cut("aéa"), 1u);
  EXPECT_EQ(cut("éab"), 4u);  // no word is cut before an ASCII letter
  EXPECT_EQ(cut(""), 0u);
  EXPECT_EQ(table.FindCut("世你好", 3), 6u);
  // A cut removes the bytes before it, so a token that needs them cannot cross the next border.
  EXPECT_EQ(table.FindCut("世界", 1), 3u);
}

// Words are made of few different characters of two to four bytes, so that tokens often cross
// borders, with whole characters and with parts of characters. The ids must equal those of merging
// without cuts. Words of up to 15 bytes are merged without cuts, and so are all words of a model
// that lacks a letter.
TEST(CutTableTest, CuttingChangesNoIds) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string characters[] = {"é", "ß", "世", "丗", "界", "畍", "๐", "😀", "a"};
  const ByteAlphabet alphabet;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.push_back(alphabet.CharOf(uint8_t(byte)));
    std::vector<std::string> parts;
    for (const std::string& c : characters) {
      for (const char byte : c) parts.push_back(alphabet.CharOf(static_cast<uint8_t>(byte)));
    }
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 400; ++i) {
      const std::string left = parts[random() % parts.size()],
                        right = parts[random() % parts.size()];
      if (left.size() + right.size() > 24) continue;
      if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
      merges.emplace_back(left, right);
      tokens.push_back(left + right);
      parts.push_back(left + right);
    }
    BpeSpec whole;
    for (size_t id = 0; id < tokens.size(); ++id) {
      whole.vocab.emplace_back(tokens[id], static_cast<TokenId>(id));
    }
    for (const auto& [left, right] : merges) whole.merges.emplace_back(left, right);
    BpeSpec uncut = whole;  // lacks a letter that no text uses
    uncut.vocab[0xFF].first = "no letter";
    auto cutting = Bpe::Create(whole), plain = Bpe::Create(uncut);
    ASSERT_TRUE(cutting.ok() && plain.ok());
    for (int i = 0; i < 300; ++i) {
      std::string word;
      for (size_t length = 1 + random() % 40; length > 0; --length) {
        word += characters[random() % std::size(characters)];
      }
      std::vector<TokenId> ids, want;
      {
        IdWriter out(&ids), plain_out(&want);
        cutting->EncodeBytes(word, word.size(), &out);
        plain->EncodeBytes(word, word.size(), &plain_out);
      }
      ASSERT_EQ(ids, want) << word;
    }
  }
}

// The same test for characters, as in vocabularies with byte fallback, where a piece is a whole
// text.
TEST(CutTableTest, CuttingChangesNoIdsOfCharacters) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string characters[] = {"▁", "▁", "a", "b", "c", "é", "世", "界", "<", "0"};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", byte);
      tokens.emplace_back(name);
    }
    // The last two characters are not in the vocabulary.
    std::vector<std::string> parts = {"▁", "a", "b", "c", "é", "世", "界"};
    tokens.insert(tokens.end(), parts.begin(), parts.end());
    std::vector<std::pair<std::string, std::string>> merges;
    for (int i = 0; i < 150; ++i) {
      const std::string left = parts[random() % parts.size()],
                        right = parts[random() % parts.size()];
      if (left.size() + right.size() > 16) continue;
      // As in real vocabularies, the mark of a word mostly comes first.
      if (right.starts_with("▁") && left != "▁" && random() % 8 != 0) continue;
      if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
      merges.emplace_back(left, right);
      tokens.push_back(left + right);
      parts.push_back(left + right);
    }
    BpeSpec whole;
    whole.byte_fallback = true;
    for (size_t id = 0; id < tokens.size(); ++id) {
      whole.vocab.emplace_back(tokens[id], static_cast<TokenId>(id));
    }
    for (const auto& [left, right] : merges) whole.merges.emplace_back(left, right);
    BpeSpec uncut = whole;  // lacks the fallback token of a byte that no text has
    uncut.vocab[0xFF].first = "no byte";
    auto cutting = Bpe::Create(whole), plain = Bpe::Create(uncut);
    ASSERT_TRUE(cutting.ok() && plain.ok());
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (size_t length = 1 + random() % 60; length > 0; --length) {
        text += characters[random() % std::size(characters)];
      }
      std::vector<TokenId> ids, want;
      {
        IdWriter out(&ids), plain_out(&want);
        cutting->Encode(text, &out);
        plain->Encode(text, &plain_out);
      }
      ASSERT_EQ(ids, want) << text;
    }
  }
}

}  // namespace
}  // namespace skein
