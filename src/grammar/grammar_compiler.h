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

// The language of a text that describes the allowed answers.
enum class GrammarKind {
  kJsonSchema,     // the schema
  kRegex,          // the whole answer matches
  kEbnf,           // GBNF's notation, start rule `root`
  kLark,           // start rule `start`
  kStructuralTag,  // XGrammar's JSON of texts, schemas and tags
};

struct GrammarSource {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;
  bool operator==(const GrammarSource&) const = default;
};

// The tokens of a model, as far as a grammar knows them.
struct GrammarVocabulary {
  std::vector<std::string> token_bytes;  // [vocab]; empty: never inside a text (special tokens)
  std::vector<TokenId> end_tokens;       // behind a text; at least one below vocab
};

// The limits of the cache of compiled grammars, of each model.
inline constexpr size_t kGrammarCacheBytesMax = size_t{64} << 20;
inline constexpr size_t kGrammarCacheEntriesMax = 256;
inline constexpr size_t kGrammarTextBytesMax = size_t{256} << 10;

// Compiles grammars for the tokens of one model, by XGrammar (Dong et al., "XGrammar: Flexible and
// Efficient Structured Generation Engine for Large Language Models", 2024), and keeps the latest.
// XGrammar's exceptions end in this class. Any thread; two threads may compile one text twice.
class GrammarCompiler {
 public:
  // `vocabulary` is called once, at the first Compile.
  explicit GrammarCompiler(std::function<GrammarVocabulary()> vocabulary);
  ~GrammarCompiler();

  // Compiles a text, which takes milliseconds, or finds it in the cache. kInvalidArgument says what
  // is wrong with it, or which part of it XGrammar would ignore. kUnsupported if the model has no
  // end token.
  Result<std::shared_ptr<const TokenGrammar>> Compile(const GrammarSource& source);

  size_t num_cached() const;

 private:
  struct Library;  // XGrammar's objects
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
  std::list<Entry> entries_;  // the latest first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
  size_t num_bytes_ = 0;
};

}  // namespace skein
