// Which schemas compile and which texts their grammars accept, token by token, without a model's
// weights (scripts/exp_structured_outputs runs it).
//   grammar_check DIR < lines     DIR: a model directory with a tokenizer
// A line is {"schema": TEXT, "texts": [TEXT, ...]}, the answer {"error": null or TEXT, "accepted":
// [BOOL, ...], "compile_us": N, "mask_us": [N, ...]}, one time for each token's mask.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "grammar/grammar_compiler.h"
#include "grammar/json_schema.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

GrammarVocabulary VocabularyOf(const Tokenizer& tokenizer) {
  GrammarVocabulary vocabulary;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    vocabulary.token_bytes.push_back(tokenizer.IsSpecial(id) ? "" : tokenizer.TokenBytes(id));
  }
  vocabulary.end_tokens = {tokenizer.eos_id().value_or(0)};
  return vocabulary;
}

// Whether the grammar allows the tokens of `text` one after the other, and then the end.
bool Accepts(const Tokenizer& tokenizer, const TokenGrammar& grammar, const std::string& text,
             Json* mask_us) {
  std::vector<TokenId> ids;
  if (!tokenizer.Encode(text, /*add_special_tokens=*/false, &ids).ok()) return false;
  ids.push_back(*tokenizer.eos_id());
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer.vocab_size()) + 31) / 32);
  const auto state = grammar.NewState();
  for (size_t i = 0; i < ids.size(); ++i) {
    const Clock::time_point begin = Clock::now();
    const bool masked = state->FindNext(std::span(ids).first(i), mask);
    mask_us->push_back(MicrosecondsSince(begin));
    const auto id = static_cast<size_t>(ids[i]);
    if (masked && (mask[id / 32] >> id % 32 & 1) == 0) return false;
  }
  return true;
}

Json Check(const Tokenizer& tokenizer, GrammarCompiler* compiler, const Json& line) {
  Json answer = {{"error", nullptr}, {"accepted", Json::array()}, {"mask_us", Json::array()}};
  const Json schema = Json::parse(line.at("schema").get<std::string>());
  // As the server takes a schema (server/generation/grammar_fields.cc).
  if (const std::string ignored = IgnoredKeyword(schema); !ignored.empty()) {
    answer["error"] = "uses " + ignored + ", which is not supported";
    answer["compile_us"] = 0;
    return answer;
  }
  const Clock::time_point begin = Clock::now();
  const auto grammar = compiler->Compile({GrammarKind::kJsonSchema, CompleteSchema(schema).dump()});
  answer["compile_us"] = MicrosecondsSince(begin);
  if (!grammar.ok()) {
    answer["error"] = grammar.status().message();
    return answer;
  }
  for (const Json& text : line.at("texts")) {
    answer["accepted"].push_back(
        Accepts(tokenizer, *grammar.value(), text.get<std::string>(), &answer["mask_us"]));
  }
  return answer;
}

int Main(const char* dir) {
  const auto loaded = Tokenizer::Load(dir);
  if (!loaded.ok() || !loaded.value()->eos_id()) {
    const std::string why = loaded.ok() ? "no end token" : loaded.status().message();
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  }
  const Tokenizer& tokenizer = *loaded.value();
  GrammarCompiler compiler([&] { return VocabularyOf(tokenizer); });
  (void)compiler.Compile({GrammarKind::kRegex, "a"});  // the vocabulary is read at the first
  for (std::string line; std::getline(std::cin, line);) {
    const Json parsed = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_discarded()) {
      std::fprintf(stderr, "no JSON: %s\n", line.c_str());
      return 1;
    }
    std::cout << Check(tokenizer, &compiler, parsed).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "grammar_check DIR < lines\n");
    return 2;
  }
  return skein::Main(argv[1]);
}
