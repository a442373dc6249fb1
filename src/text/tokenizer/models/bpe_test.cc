#include "text/tokenizer/models/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

namespace skein {
namespace {

// A model over the letters of the byte alphabet with random merges, kept as plain maps.
struct RandomModel {
  explicit RandomModel(std::mt19937* random, bool ignore_merges) {
    const ByteAlphabet alphabet;
    for (int byte = 0; byte < 256; ++byte) Add(alphabet.CharOf(static_cast<uint8_t>(byte)));
    std::vector<std::string> parts = {"a", "b", "c", "d"};
    while (merges.size() < 150) {
      const std::string left = parts[(*random)() % parts.size()];
      const std::string right = parts[(*random)() % parts.size()];
      if (left.size() + right.size() > 9 ||
          !ranks.emplace(std::pair(left, right), merges.size()).second) {
        continue;
      }
      merges.emplace_back(left, right);
      // Several merges may make the same token.
      if (!ids.contains(left + right)) Add(left + right);
      parts.push_back(left + right);
    }
    // No merge makes these tokens, so only ignore_merges finds them.
    for (const char* token : {"abcd", "dcba", "aabb", "ddddd", "abcabcabcabcabcabc"}) {
      if (!ids.contains(token)) Add(token);
    }
    spec.ignore_merges = ignore_merges;
    for (const auto& [token, id] : ids) spec.vocab.emplace_back(token, id);
    for (const auto& [left, right] : merges) spec.merges.emplace_back(left, right);
  }
  void Add(const std::string& token) {
    const auto id = static_cast<TokenId>(ids.size());
    ids[token] = id;
  }
  // Encodes by the definition: applies the best merge, the leftmost first, until there is none.
  std::vector<TokenId> Encode(const std::string& word) const {
    if (spec.ignore_merges && ids.contains(word)) return {ids.at(word)};
    std::vector<std::string> parts;
    for (const char c : word) parts.emplace_back(1, c);
    while (true) {
      size_t best = parts.size(), best_rank = merges.size();
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto it = ranks.find({parts[i], parts[i + 1]});
        if (it != ranks.end() && it->second < best_rank) {
          best = i;
          best_rank = it->second;
        }
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<TokenId> out;
    for (const std::string& part : parts) out.push_back(ids.at(part));
    return out;
  }

  std::map<std::string, TokenId> ids;
  std::vector<std::pair<std::string, std::string>> merges;
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  BpeSpec spec;
};

std::string RandomWord(std::mt19937* random) {
  // The lengths lie around the limits of the two caches and of the two ways of merging pairs.
  const size_t lengths[] = {1, 2, 5, 9, 15, 16, 40, 48, 49, 63, 64, 200};
  std::string word(1 + (*random)() % lengths[(*random)() % 12], 'a');
  const unsigned letters = 1 + (*random)() % 4;
  for (char& c : word) c = static_cast<char>('a' + (*random)() % letters);
  return word;
}

std::vector<TokenId> EncodeBytes(const Bpe& bpe, const std::string& word, size_t num_readable) {
  std::vector<TokenId> ids;
  IdWriter out(&ids);
  bpe.EncodeBytes(std::string_view(word), num_readable, &out);
  out.Flush();
  return ids;
}

TEST(BpeTest, RandomModelsMergeByTheDefinition) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 10; ++round) {
    const RandomModel model(&random, round % 2 == 1);
    auto bpe = Bpe::Create(model.spec);
    ASSERT_TRUE(bpe.ok()) << bpe.status().message();
    for (int i = 0; i < 300; ++i) {
      const std::string word = RandomWord(&random);
      const std::vector<TokenId> want = model.Encode(word);
      // The second encoding comes from the cache. The buffer holds further bytes after the word.
      for (int repeat = 0; repeat < 2; ++repeat) {
        ASSERT_EQ(EncodeBytes(*bpe, word, word.size()), want) << word;
        std::string padded = word + "dcbaabcdabcdabcd";
        std::vector<TokenId> ids;
        IdWriter out(&ids);
        bpe->EncodeBytes(std::string_view(padded).substr(0, word.size()), padded.size(), &out);
        bpe->Encode(word, &out);  // letters stand for themselves
        out.Flush();
        std::vector<TokenId> twice = want;
        twice.insert(twice.end(), want.begin(), want.end());
        ASSERT_EQ(ids, twice) << word;
      }
    }
  }
}

// Threads write the same cache entries, with more words than the cache holds.
TEST(BpeTest, ThreadsShareTheMemoryOfWords) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const RandomModel model(&random, false);
  auto bpe = Bpe::Create(model.spec);
  ASSERT_TRUE(bpe.ok()) << bpe.status().message();
  std::vector<std::string> words;
  std::vector<std::vector<TokenId>> want;
  for (int i = 0; i < 3000; ++i) {
    words.push_back(RandomWord(&random));
    want.push_back(model.Encode(words.back()));
  }
  std::vector<std::thread> threads;
  std::vector<int> num_wrong(4, 0);
  for (unsigned t = 0; t < num_wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 own(seed + t);
      for (int i = 0; i < 20'000; ++i) {
        const size_t k = own() % words.size();
        if (EncodeBytes(*bpe, words[k], words[k].size()) != want[k]) ++num_wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, std::vector<int>(4, 0));
}

// The cache is small, so that entries are replaced constantly while other threads read them.
TEST(WordCacheTest, AnEntryIsFoundWholeOrNotAtAll) {
  WordCache<2, 1, 2> cache;
  const auto key_of = [](int n) { return WordKey<2>("word" + std::to_string(n), 0); };
  const auto ids_of = [](int n) { return std::vector<TokenId>(1 + n % 3, n); };
  std::vector<std::thread> threads;
  std::vector<int> num_wrong(3, 0), num_found(3, 0);
  for (unsigned t = 0; t < num_wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 200'000; ++i) {
        const int n = static_cast<int>(random() % 40);
        std::vector<TokenId> ids;
        IdWriter out(&ids);
        if (cache.Find(key_of(n), key_of(n).Hash(), &out)) {
          out.Flush();
          ++num_found[t];
          if (ids != ids_of(n)) ++num_wrong[t];
        } else {
          cache.Insert(key_of(n), key_of(n).Hash(), ids_of(n));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, std::vector<int>(3, 0));
  EXPECT_GT(num_found[0], 1000);
}

TEST(WordCacheTest, KeysTellWordsApart) {
  const std::string zeros(16, '\0');
  EXPECT_NE(WordKey<2>("", 0).words, WordKey<2>(std::string_view(zeros).substr(0, 1), 0).words);
  EXPECT_NE(WordKey<2>("a", 0).words, WordKey<2>("a", 1).words);
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (size_t size = 0; size <= 15; ++size) {
    const std::string_view word = std::string_view(text).substr(0, size);
    EXPECT_EQ(WordKey<2>(word, 1).words, WordKey<2>::Readable(word, 1).words) << size;
  }
}

TEST(TokenTableTest, FindsBothWays) {
  TokenTable table(5, 3);
  EXPECT_EQ(table.Add("one", 1), TokenTable::AddResult::kAdded);
  EXPECT_EQ(table.Add("", 4), TokenTable::AddResult::kAdded);
  EXPECT_EQ(table.Add("two", 1), TokenTable::AddResult::kIdTaken);
  EXPECT_EQ(table.Add("one", 2), TokenTable::AddResult::kTokenTaken);
  EXPECT_EQ(table.Find("one"), 1);
  EXPECT_EQ(table.Find(""), 4);
  EXPECT_EQ(table.Find("two"), std::nullopt);
  EXPECT_EQ(table.Text(1), "one");
  EXPECT_EQ(table.Text(2), "");
  EXPECT_FALSE(table.Has(2));
  EXPECT_FALSE(table.Has(-1));
  EXPECT_EQ(table.num_tokens(), 2u);
}

}  // namespace
}  // namespace skein
