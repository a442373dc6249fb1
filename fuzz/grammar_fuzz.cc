#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "grammar/grammar_compiler.h"
#include "grammar/json_schema.h"
#include "harness.h"

namespace skein::fuzz {
namespace {

constexpr int32_t kEnd = 256;
constexpr int32_t kVocab = 257;

GrammarVocabulary ByteVocabulary() {
  GrammarVocabulary vocabulary;
  for (int byte = 0; byte < kEnd; ++byte) {
    vocabulary.token_bytes.emplace_back(1, static_cast<char>(byte));
  }
  vocabulary.token_bytes.emplace_back();
  vocabulary.end_tokens = {kEnd};
  return vocabulary;
}

// Follows the grammar by random tokens that it allows: at least one always is.
void Walk(const TokenGrammar& grammar, uint64_t seed) {
  constexpr int kMostTokens = 64;
  Random random(seed);
  const auto state = grammar.NewState();
  std::vector<TokenId> output;
  std::array<uint32_t, (kVocab + 31) / 32> mask{};
  for (int i = 0; i < kMostTokens; ++i) {
    std::vector<TokenId> allowed;
    const bool some = state->FindNext(output, mask);
    for (TokenId id = 0; id < kVocab; ++id) {
      if (!some || (mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1)) allowed.push_back(id);
    }
    SKEIN_CHECK(!allowed.empty());
    const TokenId next = allowed[static_cast<size_t>(random.Between(0, std::ssize(allowed) - 1))];
    if (next == kEnd) return;
    output.push_back(next);
  }
}

}  // namespace

// One byte says the kind (a JSON schema, an expression, a grammar, a structural tag), one the seed
// of the answer; the rest is its text.
void FuzzGrammar(Bytes data) {
  constexpr size_t kMostBytes = 1024;
  if (data.size() < 2 || data.size() > kMostBytes) return;
  constexpr std::array kKinds = {GrammarKind::kJsonSchema, GrammarKind::kRegex, GrammarKind::kEbnf,
                                 GrammarKind::kLark, GrammarKind::kStructuralTag};
  // Without its cache: each input compiles.
  GrammarCompiler compiler(ByteVocabulary);
  const GrammarSource source = {kKinds[data[0] % kKinds.size()],
                                std::string(TextOf(data.subspan(2)))};
  const auto grammar = compiler.Compile(source);
  if (!grammar.ok()) {
    SKEIN_CHECK(!grammar.status().message().empty());
    return;
  }
  Walk(*grammar.value(), data[1]);
}

}  // namespace skein::fuzz
