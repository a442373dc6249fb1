#include "grammar/grammar_compiler.h"

#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "base/check.h"

namespace skein {
namespace {

constexpr int kCompileThreadsMax = 4;
constexpr size_t kErrorBytesMax = 400;
// The most white space between two parts of JSON, so that a model cannot fill its token budget with
// white space. It is enough for lines that are indented by 8 levels of 4 spaces.
constexpr int kJsonWhitespaceMax = 33;

// The parts of a text that XGrammar would ignore. XGrammar reports them on the thread that
// compiles.
thread_local std::string* ignored_parts = nullptr;

// Shortens the message of a failed check: "Check failed: (condition) is false: what is wrong".
std::string Shortened(std::string text) {
  constexpr std::string_view kEndOfCheck = " is false: ";
  const size_t check = text.find(kEndOfCheck);
  if (text.starts_with("Check failed: ") && check != text.npos) {
    text.erase(0, check + kEndOfCheck.size());
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kErrorBytesMax) text.resize(kErrorBytesMax);
  return text;
}

DLTensor MaskTensor(std::span<uint32_t> mask, int64_t* shape) {
  *shape = std::ssize(mask);
  DLTensor tensor = {};
  tensor.data = mask.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = xgrammar::GetBitmaskDLType();
  tensor.shape = shape;
  return tensor;
}

class MatcherState final : public GrammarState {
 public:
  explicit MatcherState(const xgrammar::CompiledGrammar& grammar)
      : matcher_(grammar), vocab_(grammar.GetTokenizerInfo().GetVocabSize()) {}

  bool FindNext(std::span<const TokenId> output, std::span<uint32_t> mask) override {
    SKEIN_CHECK(num_accepted_ <= output.size());
    SKEIN_CHECK(std::cmp_equal(mask.size(), (vocab_ + 31) / 32));
    try {
      for (; !stuck_ && num_accepted_ < output.size(); ++num_accepted_) {
        stuck_ = matcher_.IsTerminated() || !matcher_.AcceptToken(output[num_accepted_]);
      }
      if (!stuck_ && !matcher_.IsTerminated()) {
        int64_t shape = 0;
        DLTensor tensor = MaskTensor(mask, &shape);
        if (!matcher_.FillNextTokenBitmask(&tensor)) return false;
        if (HasToken(mask)) return true;
      }
    } catch (const std::exception&) {
      stuck_ = true;
    }
    // No further text is possible in the grammar: the answer ends.
    std::ranges::fill(mask, 0);
    for (const int32_t id : matcher_.GetStopTokenIds()) mask[id / 32] |= uint32_t{1} << id % 32;
    return true;
  }

 private:
  // Whether the mask allows a token. Clears the bits beyond the vocabulary first.
  bool HasToken(std::span<uint32_t> mask) const {
    const int32_t rest = vocab_ % 32;
    if (rest != 0) mask.back() &= (uint32_t{1} << rest) - 1;
    return std::ranges::any_of(mask, [](uint32_t bits) { return bits != 0; });
  }

  xgrammar::GrammarMatcher matcher_;
  int32_t vocab_;
  size_t num_accepted_ = 0;
  bool stuck_ = false;
};

class CompiledTokenGrammar final : public TokenGrammar {
 public:
  explicit CompiledTokenGrammar(xgrammar::CompiledGrammar grammar) : grammar_(std::move(grammar)) {}
  std::unique_ptr<GrammarState> NewState() const override {
    return std::make_unique<MatcherState>(grammar_);
  }
  size_t num_bytes() const { return grammar_.MemorySizeBytes(); }
  // Whether an answer can begin with some token, or be empty (an end token).
  bool CanBegin() const {
    xgrammar::GrammarMatcher matcher(grammar_);
    const int32_t vocab = grammar_.GetTokenizerInfo().GetVocabSize();
    std::vector<uint32_t> mask(static_cast<size_t>(xgrammar::GetBitmaskSize(vocab)));
    int64_t shape = 0;
    DLTensor tensor = MaskTensor(mask, &shape);
    return !matcher.FillNextTokenBitmask(&tensor) ||
           std::ranges::any_of(mask, [](uint32_t bits) { return bits != 0; });
  }

 private:
  xgrammar::CompiledGrammar grammar_;
};

xgrammar::CompiledGrammar CompileText(xgrammar::GrammarCompiler* compiler,
                                      const GrammarSource& source) {
  switch (source.kind) {
    case GrammarKind::kJsonSchema:
      return compiler->CompileJSONSchema(source.text, /*any_whitespace=*/true, std::nullopt,
                                         std::nullopt, /*strict_mode=*/false, kJsonWhitespaceMax);
    case GrammarKind::kRegex:
      return compiler->CompileRegex(source.text);
    case GrammarKind::kEbnf:
      return compiler->CompileGrammar(source.text);
    case GrammarKind::kLark:
      return compiler->CompileLark(source.text);
    case GrammarKind::kStructuralTag:
      return compiler->CompileStructuralTag(source.text);
  }
  throw std::logic_error("no such kind of grammar");
}

std::string KeyOf(const GrammarSource& source) {
  return static_cast<char>('0' + static_cast<int>(source.kind)) + source.text;
}

}  // namespace

struct GrammarCompiler::Library {
  explicit Library(GrammarVocabulary vocabulary)
      : compiler(xgrammar::TokenizerInfo(vocabulary.token_bytes, xgrammar::VocabType::RAW,
                                         static_cast<int>(vocabulary.token_bytes.size()),
                                         vocabulary.end_tokens),
                 std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1,
                            kCompileThreadsMax),
                 /*cache_enabled=*/false) {}
  xgrammar::GrammarCompiler compiler;
};

GrammarCompiler::GrammarCompiler(std::function<GrammarVocabulary()> vocabulary)
    : load_vocabulary_(std::move(vocabulary)) {}

GrammarCompiler::~GrammarCompiler() = default;

Status GrammarCompiler::Load() {
  std::call_once(loaded_, [&] {
    GrammarVocabulary vocabulary = load_vocabulary_();
    std::erase_if(vocabulary.end_tokens, [&](TokenId id) {
      return id < 0 || std::cmp_greater_equal(id, vocabulary.token_bytes.size());
    });
    if (!vocabulary.end_tokens.empty()) {
      library_ = std::make_unique<Library>(std::move(vocabulary));
    }
  });
  if (library_ != nullptr) return Status::Ok();
  return {StatusCode::kUnsupported, "the model has no end token, which a grammar needs"};
}

Result<std::shared_ptr<const TokenGrammar>> GrammarCompiler::Compile(const GrammarSource& source) {
  if (source.text.size() > kGrammarTextBytesMax) {
    return Status(StatusCode::kInvalidArgument, "it has " + std::to_string(source.text.size()) +
                                                    " bytes, must have at most " +
                                                    std::to_string(kGrammarTextBytesMax));
  }
  SKEIN_RETURN_IF_ERROR(Load());
  std::string key = KeyOf(source);
  if (auto grammar = Find(key)) return grammar;
  std::string ignored;
  ignored_parts = &ignored;
  std::shared_ptr<const CompiledTokenGrammar> grammar;
  std::string error;
  try {
    grammar = std::make_shared<CompiledTokenGrammar>(CompileText(&library_->compiler, source));
    if (!grammar->CanBegin()) error = "no answer satisfies it";
  } catch (const std::bad_alloc&) {
    ignored_parts = nullptr;
    throw;
  } catch (const std::exception& caught) {
    error = caught.what();
    if (error.empty()) error = "XGrammar cannot compile it";
  }
  ignored_parts = nullptr;
  if (!error.empty()) return Status(StatusCode::kInvalidArgument, Shortened(std::move(error)));
  if (!ignored.empty()) return Status(StatusCode::kInvalidArgument, Shortened(std::move(ignored)));
  Keep({.key = std::move(key), .grammar = grammar, .num_bytes = grammar->num_bytes()});
  return std::shared_ptr<const TokenGrammar>(std::move(grammar));
}

std::shared_ptr<const TokenGrammar> GrammarCompiler::Find(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->grammar;
}

void GrammarCompiler::Keep(Entry entry) {
  entry.num_bytes += entry.key.size() * 2;
  std::lock_guard lock(mutex_);
  if (index_.contains(entry.key)) return;
  num_bytes_ += entry.num_bytes;
  entries_.push_front(std::move(entry));
  index_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > kGrammarCacheEntriesMax || num_bytes_ > kGrammarCacheBytesMax) {
    num_bytes_ -= entries_.back().num_bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

size_t GrammarCompiler::num_cached() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace skein

// XGrammar is built with XGRAMMAR_LOG_CUSTOMIZE: these two functions receive its errors and
// warnings.
namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& file, int lineno, const std::string& message);
void LogMessageImpl(const std::string& file, int lineno, int level, const std::string& message);

[[noreturn]] void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

void LogMessageImpl(const std::string&, int, int level, const std::string& message) {
  constexpr int kWarning = 2;
  if (level < kWarning || skein::ignored_parts == nullptr) return;
  if (!skein::ignored_parts->empty()) *skein::ignored_parts += "; ";
  *skein::ignored_parts += message;
}

}  // namespace xgrammar
