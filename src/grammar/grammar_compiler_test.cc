#include "grammar/grammar_compiler.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace skein {
namespace {

// The vocabulary has a token for each byte, a few longer tokens, a special token without text, and
// an end token.
constexpr TokenId kFirstLong = 256;
constexpr TokenId kSpecial = 260;
constexpr TokenId kEnd = 261;
constexpr size_t kVocab = 300;  // the last ids are unused, and do not fill a word of the mask

GrammarVocabulary Vocabulary() {
  GrammarVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.token_bytes.push_back(std::string(1, static_cast<char>(byte)));
  }
  for (const char* text : {"{\"", "\": ", "true", "\"}"}) vocabulary.token_bytes.push_back(text);
  vocabulary.token_bytes.resize(kVocab);
  vocabulary.token_bytes[kSpecial] = "";
  vocabulary.end_tokens = {kEnd, 70'000};
  return vocabulary;
}

class GrammarCompilerTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TokenGrammar> Compile(GrammarKind kind, const std::string& text) {
    auto grammar = compiler_.Compile({kind, text});
    EXPECT_TRUE(grammar.ok()) << grammar.status().message();
    return *grammar;
  }

  // Whether the grammar allows the bytes of `text` one after the other, and then the end.
  bool Accepts(const TokenGrammar& grammar, std::string_view text) {
    const auto state = grammar.NewState();
    std::vector<TokenId> output;
    for (const char c : text) {
      const auto byte = static_cast<TokenId>(static_cast<unsigned char>(c));
      if (!Allows(state.get(), output, byte)) return false;
      output.push_back(byte);
    }
    return Allows(state.get(), output, kEnd);
  }

  bool Allows(GrammarState* state, const std::vector<TokenId>& output, TokenId token) {
    std::vector<uint32_t> mask((kVocab + 31) / 32);
    if (!state->FindNext(output, mask)) return true;
    return (mask[static_cast<size_t>(token) / 32] >> token % 32 & 1) != 0;
  }

  GrammarCompiler compiler_{&Vocabulary};
};

TEST_F(GrammarCompilerTest, AnswersAreTextsOfTheSchema) {
  const auto grammar = Compile(GrammarKind::kJsonSchema, R"({"type": "object", "properties": {
      "ok": {"type": "boolean"}, "n": {"type": "integer", "minimum": 3, "maximum": 12}},
      "required": ["ok", "n"], "additionalProperties": false})");
  EXPECT_TRUE(Accepts(*grammar, R"({"ok": true, "n": 12})"));
  EXPECT_TRUE(Accepts(*grammar, "{\n  \"ok\": false,\n  \"n\": 3\n}"));
  EXPECT_FALSE(Accepts(*grammar, R"({"ok": true, "n": 13})"));
  EXPECT_FALSE(Accepts(*grammar, R"({"ok": true})"));
  EXPECT_FALSE(Accepts(*grammar, R"({"ok": true, "n": 3, "more": 1})"));
  EXPECT_FALSE(Accepts(*grammar, "{" + std::string(64, ' ') + R"("ok": true, "n": 12})"));
}

TEST_F(GrammarCompilerTest, LongTokensAndEnds) {
  const auto grammar = Compile(GrammarKind::kRegex, R"re(\{"a": true\}|\{"ab": true\})re");
  const auto state = grammar->NewState();
  EXPECT_TRUE(Allows(state.get(), {}, kFirstLong));
  EXPECT_TRUE(Allows(state.get(), {}, '{'));
  EXPECT_FALSE(Allows(state.get(), {}, kFirstLong + 2));
  EXPECT_FALSE(Allows(state.get(), {}, kSpecial));
  EXPECT_FALSE(Allows(state.get(), {}, kEnd));
  std::vector<TokenId> output = {kFirstLong, 'a', kFirstLong + 1, kFirstLong + 2};
  EXPECT_TRUE(Allows(state.get(), output, '}'));
  output.push_back('}');
  EXPECT_TRUE(Allows(state.get(), output, kEnd));
  EXPECT_FALSE(Allows(state.get(), output, '}'));
  // A second state of the grammar starts at its own beginning.
  EXPECT_TRUE(Allows(grammar->NewState().get(), {}, kFirstLong));
}

TEST_F(GrammarCompilerTest, BehindTheEndOnlyTheEndIsAllowed) {
  const auto grammar = Compile(GrammarKind::kRegex, "a");
  const auto state = grammar->NewState();
  EXPECT_TRUE(Allows(state.get(), {'a', kEnd}, kEnd));
  EXPECT_FALSE(Allows(state.get(), {'a', kEnd}, 'a'));
  // The answer must also end after tokens that the grammar does not allow.
  EXPECT_TRUE(Allows(grammar->NewState().get(), {'b'}, kEnd));
}

TEST_F(GrammarCompilerTest, Rules) {
  const auto ebnf = Compile(GrammarKind::kEbnf, R"re(root ::= "(" root ")" | "x")re");
  EXPECT_TRUE(Accepts(*ebnf, "((x))"));
  EXPECT_FALSE(Accepts(*ebnf, "((x)"));
  const auto lark = Compile(GrammarKind::kLark, "start: \"a\" WORD\nWORD: /[b-d]+/\n");
  EXPECT_TRUE(Accepts(*lark, "abcd"));
  EXPECT_FALSE(Accepts(*lark, "a"));
  const auto tag = Compile(GrammarKind::kStructuralTag, R"({"type": "structural_tag", "format":
      {"type": "tag", "begin": "<n>", "content": {"type": "json_schema",
       "json_schema": {"type": "integer"}}, "end": "</n>"}})");
  EXPECT_TRUE(Accepts(*tag, "<n>17</n>"));
  EXPECT_FALSE(Accepts(*tag, "<n>x</n>"));
}

TEST_F(GrammarCompilerTest, MistakesSayWhatIsWrong) {
  const struct {
    GrammarKind kind;
    const char* text;
    const char* part;  // of the error message
  } kCases[] = {
      {GrammarKind::kJsonSchema, R"({"type": "number of things"})", "number of things"},
      {GrammarKind::kJsonSchema, R"({"properties": 3})", "propert"},
      {GrammarKind::kJsonSchema, R"({"$ref": "#/$defs/None"})", "None"},
      {GrammarKind::kJsonSchema, R"({"type": "number", "multipleOf": 0.5})", "multipleOf"},
      {GrammarKind::kJsonSchema, "{", ""},
      {GrammarKind::kRegex, "(a", ""},
      {GrammarKind::kRegex, "(?=a)a", ""},
      {GrammarKind::kEbnf, "root ::= other", "other"},
      {GrammarKind::kEbnf, "root ::= root", "no answer"},
      {GrammarKind::kJsonSchema, R"({"$ref": "#"})", "no answer"},
      {GrammarKind::kLark, "rule: \"a\"", "start"},
      {GrammarKind::kStructuralTag, R"({"type": "structural_tag", "format": {"type": "no"}})",
       "no"},
  };
  for (const auto& [kind, text, part] : kCases) {
    const auto grammar = compiler_.Compile({kind, text});
    EXPECT_FALSE(grammar.ok()) << text;
    if (grammar.ok()) continue;
    EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(grammar.status().message().find(part), std::string::npos)
        << text << ": " << grammar.status().message();
    EXPECT_FALSE(grammar.status().message().empty());
    EXPECT_EQ(grammar.status().message().find(".cc"), std::string::npos);
  }
  EXPECT_EQ(compiler_.num_cached(), 0u);
  EXPECT_FALSE(compiler_.Compile({GrammarKind::kRegex, std::string(300'000, 'a')}).ok());
}

TEST_F(GrammarCompilerTest, TheCacheIsBounded) {
  const auto first = Compile(GrammarKind::kRegex, "a{1}");
  EXPECT_EQ(Compile(GrammarKind::kRegex, "a{1}"), first);
  EXPECT_NE(Compile(GrammarKind::kEbnf, "root ::= \"a\""), first);
  for (int i = 0; i < 300; ++i) {
    (void)Compile(GrammarKind::kRegex, "b{" + std::to_string(i + 1) + "}");
  }
  EXPECT_EQ(compiler_.num_cached(), kGrammarCacheEntriesMax);
  EXPECT_NE(Compile(GrammarKind::kRegex, "a{1}"), first);
  // A grammar that the cache has dropped lives as long as it is used.
  EXPECT_TRUE(Accepts(*first, "a"));
}

TEST_F(GrammarCompilerTest, ThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const auto grammar =
            compiler_.Compile({GrammarKind::kRegex, "c{" + std::to_string(i) + ",}"});
        EXPECT_TRUE(grammar.ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiler_.num_cached(), 20u);
}

TEST(GrammarCompilerEndTest, AModelWithoutEndTokenHasNoGrammars) {
  GrammarCompiler compiler([] {
    GrammarVocabulary vocabulary = Vocabulary();
    vocabulary.end_tokens.clear();
    return vocabulary;
  });
  EXPECT_EQ(compiler.Compile({GrammarKind::kRegex, "a"}).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace skein
