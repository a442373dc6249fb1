#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "testing/own_tokenizer.h"
#include "text/stream_decoder.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using PlainJson = nlohmann::json;
using testing::LoadOwnTokenizer;
using testing::OwnTokenizerFolder;

// A folder with a small tokenizer.json whose members a test changes.
class TokenizerLoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "skein_tokenizer_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    json_ = PlainJson::parse(R"({"added_tokens": [], "model": {
        "type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<std::unique_ptr<Tokenizer>> Load() { return LoadText(json_.dump()); }
  Result<std::unique_ptr<Tokenizer>> LoadText(const std::string& text) {
    std::ofstream(folder_ + "/tokenizer.json") << text;
    return Tokenizer::Load(folder_);
  }
  void ExpectRefused(StatusCode code, const std::string& part) {
    const auto result = Load();
    ASSERT_FALSE(result.ok()) << json_.dump();
    EXPECT_EQ(result.status().code(), code) << result.status().message();
    EXPECT_THAT(result.status().message(), HasSubstr(part));
  }

  std::string folder_;
  PlainJson json_;
};

TEST_F(TokenizerLoadTest, SmallestFileWorks) {
  auto tokenizer = Load();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  std::vector<TokenId> ids = {7};
  ASSERT_TRUE((*tokenizer)->Encode("abxa", true, &ids).ok());
  EXPECT_THAT(ids,
              // Appended; without an unk_token, the unknown character is dropped.
              ElementsAre(7, 2, 0));
  EXPECT_EQ((*tokenizer)->Decode(std::vector<TokenId>{2, 0, 99, -1}, false), "ab a");
  EXPECT_EQ((*tokenizer)->bos_id(), std::nullopt);
}

// transformers writes 10^30 for an unlimited model_max_length.
TEST_F(TokenizerLoadTest, NumbersBeyond64Bits) {
  const std::string huge = "1000000000000000019884624838656";
  std::string text = json_.dump();
  text.insert(1, "\"unknown\": [" + huge + ", 1e999],");
  std::ofstream(folder_ + "/tokenizer_config.json")
      << R"({"eos_token": "ab", "model_max_length": )" << huge << "}";
  auto tokenizer = LoadText(text);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ((*tokenizer)->eos_id(), 2);
  text = json_.dump();
  text.insert(text.find("\"a\":0") + 4, huge);
  tokenizer = LoadText(text);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("'vocab': the id of 'a'"));
}

TEST_F(TokenizerLoadTest, UnsupportedComponentsAreNamed) {
  const PlainJson valid = json_;
  const auto refused = [&](const char* key, const char* value, const char* name) {
    json_ = valid;
    json_[key] = PlainJson::parse(value);
    ExpectRefused(StatusCode::kUnsupported, name);
  };
  refused("normalizer", R"({"type": "Mystery"})", "normalizer: Mystery");
  refused("normalizer", R"({"type": "Sequence", "normalizers": [{"type": "Append"}]})", "Append");
  refused("pre_tokenizer", R"({"type": "UnicodeScripts"})", "UnicodeScripts");
  refused("pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "RandomChunk"}]})",
          "RandomChunk");
  refused("decoder", R"({"type": "CTC", "pad_token": "<pad>"})", "decoder: CTC");
  refused("decoder", R"({"type": "BPEDecoder", "suffix": "</w>"})", "decoder: BPEDecoder");
  refused("decoder", R"({"type": "Strip", "content": " ", "start": 0, "stop": 1})", "'stop' 1");
  for (const char* behind_fuse :
       {R"({"type": "WordPiece", "prefix": "##", "cleanup": true})", R"({"type": "ByteLevel"})",
        R"({"type": "ByteFallback"})", R"({"type": "Metaspace", "replacement": "_"})"}) {
    refused("decoder",
            (std::string(R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, )") + behind_fuse +
             "]}")
                .c_str(),
            "joins all tokens");
  }
  refused("post_processor", R"({"type": "Mystery"})", "post_processor: Mystery");
  const std::string one_template =
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
          "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                   {"Sequence": {"id": "B", "type_id": 1}}],
          "special_tokens": {}})";
  const auto behind_template = [&](const std::string& processor) {
    return R"({"type": "Sequence", "processors": [)" + one_template + "," + processor + "]}";
  };
  refused("post_processor", behind_template(one_template).c_str(), "behind TemplateProcessing");
  for (const char* type : {"BertProcessing", "RobertaProcessing"}) {
    const std::string processor =
        std::string(R"({"type": ")") + type + R"(", "sep": ["a", 0], "cls": ["b", 1]})";
    refused("post_processor", behind_template(processor).c_str(), type);
  }
  refused("post_processor",
          R"({"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}})",
          "'single' has other than one sequence A");
  refused("post_processor",
          R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
              "pair": [{"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {}})",
          "'pair' has other than");
  refused("model", R"({"type": "Lattice"})", "model: Lattice");
  refused("model", R"({"type": "Unigram", "unk_id": 0, "vocab": [["a", 0]], "alpha": 0.1})",
          "alpha");
  const PlainJson members = PlainJson::parse(
      R"({"dropout": 0.1, "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>"})");
  for (const auto& [key, value] : members.items()) {
    json_ = valid;
    json_["model"][key] = value;
    ExpectRefused(StatusCode::kUnsupported, key);
  }
  for (const char* pattern : {"^a", "(?i:a)", "\\bword", "[a&&b]", "[[:alpha:]]", "(a)\\1", "x*",
                              "a{2}+", "\\p{Greek}", "\\w+", "(?<name>a)"}) {
    json_ = valid;
    json_["pre_tokenizer"] = PlainJson::parse(
        R"({"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false})");
    json_["pre_tokenizer"]["pattern"]["Regex"] = pattern;
    ExpectRefused(StatusCode::kUnsupported, "regular expression");
  }
}

TEST_F(TokenizerLoadTest, BrokenFilesAreErrors) {
  const PlainJson valid = json_;
  EXPECT_EQ(Tokenizer::Load(folder_ + "/nowhere").status().code(), StatusCode::kNotFound);
  for (const char* text : {"", "{", "[]", "null", "{\"model\": 3}", "\"x\"", "{\"model\": {}}"}) {
    EXPECT_FALSE(LoadText(text).ok()) << text;
  }
  json_["model"]["merges"] = PlainJson::parse(R"([["a", "z"]])");
  ExpectRefused(StatusCode::kInvalidArgument, "'z'");
  json_["model"]["merges"] = PlainJson::parse(R"(["a b c"])");
  ExpectRefused(StatusCode::kInvalidArgument, "merge 0");
  json_ = valid;
  json_["model"]["vocab"]["c"] = -1;
  ExpectRefused(StatusCode::kInvalidArgument, "'c'");
  json_["model"]["vocab"]["c"] = 2'000'000'000;
  ExpectRefused(StatusCode::kInvalidArgument, "2000000000");
  json_["model"]["vocab"]["c"] = 2;
  ExpectRefused(StatusCode::kInvalidArgument, "share the id 2");
  json_ = valid;
  json_["model"]["unk_token"] = "<unk>";
  ExpectRefused(StatusCode::kInvalidArgument, "<unk>");
  json_ = valid;
  json_["added_tokens"] = PlainJson::parse(R"([{"id": 9, "content": "<x>"}])");
  ExpectRefused(StatusCode::kInvalidArgument, "gives it 3");
  json_ = valid;
  const auto invalid = [&](const char* key, const char* value, const char* part) {
    json_ = valid;
    json_[key] = PlainJson::parse(value);
    ExpectRefused(StatusCode::kInvalidArgument, part);
  };
  invalid("model", R"({"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]",
                       "continuing_subword_prefix": "##", "max_input_chars_per_word": 9})",
          "[UNK]");
  invalid("model", R"({"type": "WordLevel", "vocab": {"a": 0, "b": 0}, "unk_token": "a"})",
          "share");
  invalid("model", R"({"type": "Unigram", "unk_id": 1, "vocab": [["a", 0]]})", "'unk_id' is 1");
  invalid("model", R"({"type": "Unigram", "unk_id": 0, "vocab": [["a"]]})", "entry 0");
  for (const char* charsmap : {"", "A", "????", "AAAA", "/////w==", "BAAAAA=="}) {
    json_ = valid;
    json_["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", charsmap}};
    ExpectRefused(StatusCode::kInvalidArgument, "precompiled_charsmap");
  }
  invalid("pre_tokenizer", R"({"type": "FixedLength", "length": 0})", "length");
  json_ = valid;
  std::ofstream(folder_ + "/tokenizer_config.json")
      << R"({"added_tokens_decoder": {"4": {"content": "<more>"}}})";
  ExpectRefused(StatusCode::kInvalidArgument, "gives it 3");
  std::ofstream(folder_ + "/tokenizer_config.json")
      << R"({"added_tokens_decoder": {"x": {"content": "<more>"}}})";
  ExpectRefused(StatusCode::kInvalidArgument, "no token id");
}

// transformers adds the tokens that only tokenizer_config.json names, and skips a byte order mark.
TEST_F(TokenizerLoadTest, TheConfigsTokensAreAdded) {
  std::ofstream(folder_ + "/tokenizer_config.json")
      << "\xEF\xBB\xBF"
      << R"({"added_tokens_decoder": {"4": {"content": "<b>"},
                                      "3": {"content": "<a>", "special": true}}})";
  auto tokenizer = LoadText("\xEF\xBB\xBF" + json_.dump());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ((*tokenizer)->TokenToId("<a>"), 3);
  EXPECT_EQ((*tokenizer)->TokenToId("<b>"), 4);
  EXPECT_TRUE((*tokenizer)->IsSpecial(3));
  EXPECT_FALSE((*tokenizer)->IsSpecial(4));
}

// Special tokens, either at given positions or everywhere, get the ids that a tokenizer without
// special tokens gives.
TEST(TokenizerTest, SpecialTokensMayBeText) {
  const auto llama = LoadOwnTokenizer("llama3-style");
  const TokenId bos = llama->TokenToId("<|begin_of_text|>").value();
  const std::string text = "a<|begin_of_text|> b <|begin_of_text|>";
  EXPECT_THAT(llama->FindSpecialTokens(text), ElementsAre(1, 21));
  const auto encode = [&](const SpecialAsText& as_text) {
    std::vector<TokenId> ids;
    EXPECT_TRUE(llama->EncodeWith(text, as_text, false, &ids).ok());
    EXPECT_EQ(llama->Decode(ids, false), text);
    return ids;
  };
  EXPECT_EQ(std::ranges::count(encode({}), bos), 2);
  EXPECT_EQ(std::ranges::count(encode({.all = true, .at = {}}), bos), 0);
  const size_t first[] = {1}, second[] = {21}, elsewhere[] = {0, 2};
  const std::vector<TokenId> plain_first = encode({.at = first});
  EXPECT_EQ(std::ranges::count(plain_first, bos), 1);
  EXPECT_EQ(plain_first.back(), bos);
  EXPECT_NE(encode({.at = second}).back(), bos);
  EXPECT_EQ(encode({.at = elsewhere}), encode({}));
  Encoding encoding;
  EncodeOptions options{false, true, std::nullopt};
  options.special_as_text = true;
  ASSERT_TRUE(llama->EncodeFull({text, {}}, options, &encoding).ok());
  EXPECT_EQ(encoding.ids, encode({.all = true, .at = {}}));
  // WordPiece models use the pipeline.
  const auto bert = LoadOwnTokenizer("bert-uncased-style");
  std::vector<TokenId> ids;
  ASSERT_TRUE(bert->EncodeWith("a [SEP] b", {.all = true, .at = {}}, false, &ids).ok());
  EXPECT_EQ(std::ranges::count(ids, bert->TokenToId("[SEP]").value()), 0);
  ASSERT_TRUE(bert->Encode("a [SEP] b", false, &ids).ok());
  EXPECT_EQ(std::ranges::count(ids, bert->TokenToId("[SEP]").value()), 1);
}

// A text has at least as many tokens as its bytes divided by the bound. An unknown bound is 0.
TEST(TokenizerTest, BytesPerTokenAreBounded) {
  const auto llama = LoadOwnTokenizer("llama3-style");
  const size_t bound = llama->max_bytes_per_token();
  ASSERT_GT(bound, 0u);
  std::string longest;
  for (TokenId id = 0; id < llama->vocab_size(); ++id) {
    if (llama->TokenBytes(id).size() > longest.size()) longest = llama->TokenBytes(id);
  }
  EXPECT_GE(bound, longest.size());
  for (const std::string& text :
       {longest + longest, std::string(5000, ' '), std::string(999, 'a')}) {
    std::vector<TokenId> ids;
    ASSERT_TRUE(llama->Encode(text, false, &ids).ok());
    EXPECT_GE(ids.size() * bound, text.size());
  }
  EXPECT_EQ(LoadOwnTokenizer("bert-uncased-style")->max_bytes_per_token(),
            0u);  // tokens for unknown words and white space have no bound
}

TEST(TokenizerTest, InvalidUtf8IsRefused) {
  const auto tokenizer = LoadOwnTokenizer("llama3-style");
  std::vector<TokenId> ids;
  for (const char* text : {"\xff", "a\xc3", "\xed\xa0\x80"}) {
    EXPECT_EQ(tokenizer->Encode(text, false, &ids).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(ids.empty());
}

TEST(TokenizerTest, TokensBytesAndSpecialIds) {
  const auto llama = LoadOwnTokenizer("llama3-style");
  const TokenId bos = llama->TokenToId("<|begin_of_text|>").value();
  EXPECT_EQ(llama->bos_id(), bos);
  EXPECT_EQ(llama->eos_id(), llama->TokenToId("<|eot_id|>"));
  EXPECT_EQ(llama->pad_id(), std::nullopt);
  EXPECT_TRUE(llama->IsSpecial(bos));
  EXPECT_FALSE(llama->IsSpecial(0));
  EXPECT_EQ(llama->IdToToken(bos), "<|begin_of_text|>");
  EXPECT_EQ(llama->TokenBytes(bos), "<|begin_of_text|>");
  EXPECT_EQ(llama->TokenBytes(llama->TokenToId("Ġthe").value()), " the");
  EXPECT_EQ(llama->TokenBytes(llama->TokenToId("Ã").value()), "\xC3");
  EXPECT_EQ(llama->TokenToId("no such token"), std::nullopt);
  EXPECT_EQ(llama->IdToToken(llama->vocab_size()), "");
  EXPECT_EQ(llama->IdToToken(-1), "");

  const auto mistral = LoadOwnTokenizer("mistral-style");
  EXPECT_EQ(mistral->TokenBytes(mistral->TokenToId("<0xE4>").value()), "\xE4");
  EXPECT_EQ(mistral->TokenBytes(mistral->TokenToId("▁the").value()), " the");
  const std::vector<TokenId> ids = {*mistral->bos_id(), mistral->TokenToId("▁the").value()};
  EXPECT_EQ(mistral->Decode(ids, true), "the");
  EXPECT_EQ(mistral->Decode(ids, false), "<s> the");
}

// The bytes of a text are the bytes of its tokens, joined. Constrained decoding depends on this.
TEST(TokenizerTest, BytesOfTokensMakeTheText) {
  const auto tokenizer = LoadOwnTokenizer("llama3-style");
  const std::string text = "naïve 世界 \xF0\x9F\x98\x80\n\n  12345 it's";
  std::vector<TokenId> ids;
  ASSERT_TRUE(tokenizer->Encode(text, false, &ids).ok());
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer->TokenBytes(id);
  EXPECT_EQ(bytes, text);
}

TEST(TokenizerTest, StreamHoldsBackIncompleteCharactersOnly) {
  const auto gemma = LoadOwnTokenizer("gemma-style");
  const auto byte = [&](const char* token) { return gemma->TokenToId(token).value(); };
  StreamDecoder stream(gemma.get(), true);
  EXPECT_EQ(stream.Push(byte("▁the")), " the");
  EXPECT_EQ(stream.Push(byte("<0xF0>")), "");
  EXPECT_EQ(stream.Push(byte("<0x9F>")), "");
  EXPECT_EQ(stream.Push(byte("<0x98>")), "");
  EXPECT_EQ(stream.Push(byte("<0x80>")), "");
  EXPECT_EQ(stream.Push(byte("▁the")), "\xF0\x9F\x98\x80 the");
  EXPECT_EQ(stream.Push(byte("<0xF0>")), "");
  EXPECT_EQ(stream.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.Push(byte("▁the")), " the");  // the stream is as good as new

  const auto llama = LoadOwnTokenizer("llama3-style");
  StreamDecoder bytes(llama.get(), true);
  EXPECT_EQ(bytes.Push(llama->TokenToId("Ã").value()), "");
  EXPECT_EQ(bytes.Push(llama->TokenToId("©").value()), "é");
  EXPECT_EQ(bytes.Push(llama->TokenToId("Ã").value()), "");
  EXPECT_EQ(bytes.Push(llama->TokenToId("a").value()),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(bytes.Finish(), "");
}

// Words of 200 kB: quadratic merging would take minutes.
TEST(TokenizerTest, LongWordsDecodeToThemselves) {
  for (const char* name : {"llama3-style", "nemo-style", "gemma-style"}) {
    const auto tokenizer = LoadOwnTokenizer(name);
    for (const char* unit : {"a", "the", "=", "\n", "世", "e\xCC\x81"}) {
      std::string text;
      while (text.size() < 200'000) text += unit;
      std::vector<TokenId> ids;
      const Status status = tokenizer->Encode(text, false, &ids);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(tokenizer->Decode(ids, false) == text) << name << " " << unit;
    }
  }
}

TEST(TokenizerTest, ThreadsShareOneTokenizer) {
  const auto tokenizer = LoadOwnTokenizer("nemo-style");
  const std::string text = "HTMLParser the naïve café 世界 [INST] 12345";
  std::vector<TokenId> want;
  ASSERT_TRUE(tokenizer->Encode(text, true, &want).ok());
  std::vector<std::thread> threads;
  std::vector<int> num_wrong(4, 0);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        std::vector<TokenId> ids;
        if (!tokenizer->Encode(text, true, &ids).ok() || ids != want) ++num_wrong[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(num_wrong, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace skein
