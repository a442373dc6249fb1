// The cost of a grammar: compiling it, and its mask per token of an answer, in CPU time.
// thread.
//   grammar_bench DIR [OPTIONS]   DIR: a model directory with a tokenizer
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "grammar/grammar_compiler.h"
#include "text/tokenizer.h"

namespace skein {
namespace {

struct Case {
  const char* name;
  GrammarSource source;
  const char* answer;
};

const Case kCases[] = {
    {"schema",
     {GrammarKind::kJsonSchema, R"({"type": "object", "properties": {
        "kind": {"enum": ["person", "place"]}, "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "job": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "languages": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 4}},
        "required": ["kind", "name", "age", "job", "languages"], "additionalProperties": false})"},
     R"({"kind": "person", "name": "Maria Lopez", "age": 34, "job": "nurse",
         "languages": ["Spanish", "Portuguese", "English"]})"},
    {"json",
     {GrammarKind::kJsonSchema, R"({"type": "object", "additionalProperties": true})"},
     R"({"name": "Maria Lopez", "tags": [1, 2.5, null, {"a": "b"}], "more": {"x": true}})"},
    {"regex", {GrammarKind::kRegex, R"(\d{3}-\d{4}( ext\. \d{1,5})?)"}, "555-0123 ext. 17"}};

GrammarVocabulary VocabularyOf(const Tokenizer& tokenizer) {
  GrammarVocabulary vocabulary;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    vocabulary.token_bytes.push_back(tokenizer.IsSpecial(id) ? "" : tokenizer.TokenBytes(id));
  }
  vocabulary.end_tokens = {tokenizer.eos_id().value_or(0)};
  return vocabulary;
}

void Compile(benchmark::State& state, const Tokenizer& tokenizer, const Case& test) {
  GrammarCompiler compiler([&] { return VocabularyOf(tokenizer); });
  (void)compiler.Compile({GrammarKind::kRegex, "a"});
  int number = 0;
  for (auto _ : state) {
    GrammarSource source = test.source;
    source.text += std::string(static_cast<size_t>(++number % 200), ' ');  // not in the cache
    if (source.kind == GrammarKind::kRegex)
      source.text = test.source.text + "x{" + std::to_string(number) + "}";
    benchmark::DoNotOptimize(compiler.Compile(source).ok());
  }
}

void Mask(benchmark::State& state, const Tokenizer& tokenizer, const Case& test) {
  GrammarCompiler compiler([&] { return VocabularyOf(tokenizer); });
  auto grammar = compiler.Compile(test.source);
  std::vector<TokenId> ids;
  if (!grammar.ok() || !tokenizer.Encode(test.answer, false, &ids).ok()) {
    return state.SkipWithError("no grammar");
  }
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer.vocab_size()) + 31) / 32);
  int64_t num_tokens = 0;
  for (auto _ : state) {
    const auto matcher = grammar.value()->NewState();
    for (size_t length = 0; length <= ids.size(); ++length) {
      matcher->FindNext(std::span(ids).first(length), mask);
    }
    num_tokens += static_cast<int64_t>(ids.size()) + 1;
  }
  state.counters["per_token"] = benchmark::Counter(
      static_cast<double>(num_tokens), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "grammar_bench DIR [OPTIONS]\n");
    return 1;
  }
  auto tokenizer = skein::Tokenizer::Load(argv[1]);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.status().message().c_str());
    return 1;
  }
  for (const skein::Case& test : skein::kCases) {
    const skein::Tokenizer& tokens = **tokenizer;
    benchmark::RegisterBenchmark((std::string("compile/") + test.name).c_str(),
                                 [&](benchmark::State& s) { skein::Compile(s, tokens, test); })
        ->MeasureProcessCPUTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((std::string("mask/") + test.name).c_str(),
                                 [&](benchmark::State& s) { skein::Mask(s, tokens, test); })
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
