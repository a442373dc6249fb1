#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "skein/request.h"
#include "skein/token_grammar.h"

namespace skein {

// The language in which the allowed answers are described.
enum class GrammarKind {
  kJsonSchema,     // a JSON schema
  kRegex,          // a regular expression for the whole answer
  kEbnf,           // a grammar in GBNF's notation; its start rule is `root`
  kLark,           // a grammar in Lark's notation; its start rule is `start`
  kStructuralTag,  // XGrammar's JSON of texts, schemas and tags
};

struct GrammarSource {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
  bool operator==(const GrammarSource&) const = default;
};

// The facts about the tokens of a model that a grammar needs.
struct GrammarVocabulary {
  // [vocab]; empty: the token is never part of a text (special tokens).
  std::vector<std::string> token_bytes;
  std::vector<TokenId> end_tokens;  // they end an answer; at least one is below vocab
};

// The limit of the cache of compiled grammars, for each model.
inline constexpr size_t kGrammarCacheBytesMax = size_t{64} << 20;
inline constexpr size_t kGrammarCacheEntriesMax = 256;
inline constexpr size_t kGrammarTextBytesMax = size_t{256} << 10;

// Compiles grammars for the tokens of one model with XGrammar (Dong et al., "XGrammar: Flexible and
// Efficient Structured Generation Engine for Large Language Models", 2024), and caches the latest
// grammars. XGrammar's exceptions do not leave this class. Any thread; two threads may compile the
// same text twice.
class GrammarCompiler {
 public:
  // `vocabulary` is called once, by the first Compile.
  explicit GrammarCompiler(std::function<GrammarVocabulary()> vocabulary);
  ~GrammarCompiler();

  // Finds a text in the cache or compiles it, which takes milliseconds. kInvalidArgument says what
  // is wrong with the text, or which part of it XGrammar would ignore. kUnsupported if the model
  // has no end token.
  Result<std::shared_ptr<const TokenGrammar>> Compile(const GrammarSource& source);

  size_t num_cached() const;

 private:
  struct Library;  // the objects of XGrammar
  struct Entry {
    std::string key;
    std::shared_ptr<const TokenGrammar> grammar;
    size_t num_bytes = 0;
  };

  std::shared_ptr<const TokenGrammar> Find(const std::string& key);
  void Keep(Entry entry);
  Status Load();

  const std::function<GrammarVocabulary()> load_vocabulary_;
  std::once_flag loaded_;
  std::unique_ptr<Library> library_;  // null: the model has no end token
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  size_t num_bytes_ = 0;
};

}  // namespace skein
