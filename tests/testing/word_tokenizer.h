#pragma once

// A tokenizer with a few words, for tests of decisions.

#include <string>
#include <string_view>
#include <vector>

#include "testing/server_fakes.h"

namespace skein::testing {

// A ByteTokenizer that also knows words, which it takes wherever they stand, the first of the list
// that fits: their ids follow the bytes'.
class WordTokenizer : public Tokenizer {
 public:
  static constexpr TokenId kFirstWord = kFakeVocabSize;

  explicit WordTokenizer(std::vector<std::string> words) : words_(std::move(words)) {}

  Status Encode(std::string_view text, bool, std::vector<TokenId>* ids) const override {
    while (!text.empty()) {
      size_t word = 0;
      while (word < words_.size() && !text.starts_with(words_[word])) ++word;
      const bool known = word < words_.size();
      ids->push_back(known ? kFirstWord + static_cast<TokenId>(word)
                           : static_cast<unsigned char>(text[0]));
      text.remove_prefix(known ? words_[word].size() : 1);
    }
    return Status::Ok();
  }
  std::string Decode(std::span<const TokenId> ids, bool) const override {
    std::string text;
    for (TokenId id : ids) text += IdToToken(id);
    return text;
  }
  std::unique_ptr<TextStream> NewTextStream(bool skip_special_tokens) const override {
    return bytes_.NewTextStream(skip_special_tokens);
  }
  int32_t vocab_size() const override { return kFirstWord + static_cast<int32_t>(words_.size()); }
  std::optional<TokenId> TokenToId(std::string_view token) const override {
    for (size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == token) return kFirstWord + static_cast<TokenId>(i);
    }
    return bytes_.TokenToId(token);
  }
  std::string_view IdToToken(TokenId id) const override {
    return id >= kFirstWord ? words_[static_cast<size_t>(id - kFirstWord)] : bytes_.IdToToken(id);
  }
  std::string TokenBytes(TokenId id) const override { return std::string(IdToToken(id)); }
  bool IsSpecial(TokenId id) const override { return id == kFakeEos; }
  std::optional<TokenId> bos_id() const override { return std::nullopt; }
  std::optional<TokenId> eos_id() const override { return kFakeEos; }
  std::optional<TokenId> pad_id() const override { return std::nullopt; }

 private:
  ByteTokenizer bytes_;
  std::vector<std::string> words_;
};

}  // namespace skein::testing
