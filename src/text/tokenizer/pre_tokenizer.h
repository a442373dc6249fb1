#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/aligned_text.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/split_scanner.h"
#include "text/unicode/char_classes.h"

namespace skein {

// What becomes of the matches of a splitter.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// A text cut into pieces that lie end to end; none is empty.
struct Pieces {
  std::string text;
  std::vector<size_t> ends;  // of each piece, ascending; the last is text.size()
};

// The pre-tokenizer of a tokenizer.json as a list of steps, none nested: cuts a normalized text
// into the pieces that merges never cross. Immutable.
class PreTokenizer {
 public:
  struct Split {
    std::optional<SplitScanner> scanner;  // else regex
    std::optional<Regex> regex;
    SplitBehavior behavior;
    bool invert;
  };
  struct Punctuation {
    SplitBehavior behavior;
  };
  struct Digits {
    bool individual;
  };
  struct ByteLevel {
    bool add_prefix_space;
    bool use_regex;
  };
  enum class PrependScheme { kAlways, kFirst, kNever };
  struct Metaspace {
    std::string replacement;
    PrependScheme prepend;
    bool split;
  };
  struct Whitespace {};       // words, runs of signs; white space goes
  struct WhitespaceSplit {};  // white space goes
  struct Bert {};             // the same, and punctuation stands alone
  struct CharDelimiter {
    uint32_t delimiter;  // goes
  };
  struct FixedLength {
    size_t length;  // characters; not 0
  };
  using Step = std::variant<Split, Punctuation, Digits, ByteLevel, Metaspace, Whitespace,
                            WhitespaceSplit, Bert, CharDelimiter, FixedLength>;

  PreTokenizer(std::vector<Step> steps, std::shared_ptr<const CharClasses> classes);

  // Whether pieces are spelt in the byte alphabet in the end.
  bool byte_level_last() const {
    return !steps_.empty() && std::holds_alternative<ByteLevel>(steps_.back());
  }

  // The scanner that alone does what Run does with raw_bytes, if the steps come to that.
  const SplitScanner* whole_scanner() const { return whole_scanner_ ? &*whole_scanner_ : nullptr; }

  // Cuts `text` (valid UTF-8). `at_start`: it begins where the whole input begins. With raw_bytes
  // a ByteLevel that comes last leaves the bytes as they are. Fails only where a regular expression
  // gave up.
  Status Run(std::string text, bool at_start, bool raw_bytes, Pieces* pieces) const;

  // The same for every text of `pieces`, in the byte alphabet, and who stands for what. Exact for
  // every pre-tokenizer.
  Status Run(std::vector<AlignedText>* pieces) const;
  // Whether Run needs the alignment to know what stands where the input begins.
  bool needs_alignment() const;
  // Whether something is added only where the whole input begins.
  bool depends_on_start() const;

 private:
  struct Match {
    size_t begin, end;
    bool is_match;
  };
  // The parts of `piece` that a step which only cuts leaves, in order.
  Status Cut(const Step& step, std::string_view piece, std::vector<Match>* parts) const;
  template <typename Is>
  void CutClass(Is is, SplitBehavior behavior, std::string_view piece,
                std::vector<Match>* parts) const;
  void CutWords(std::string_view piece, std::vector<Match>* parts) const;
  Status RunCut(const Step& step, Pieces* pieces) const;
  Status AlignStep(const Step& step, AlignedText piece, std::vector<AlignedText>* out) const;
  Status FindMatches(const Split& step, std::string_view piece, std::vector<Match>* matches) const;
  void RunByteLevel(const ByteLevel& step, bool raw_bytes, Pieces* pieces) const;
  void RunMetaspace(const Metaspace& step, bool at_start, Pieces* pieces) const;
  static void ApplyBehavior(SplitBehavior behavior, std::vector<Match>* matches);

  static std::optional<SplitScanner> FindWholeScanner(const std::vector<Step>& steps);

  std::vector<Step> steps_;
  std::optional<SplitScanner> whole_scanner_;
  std::shared_ptr<const CharClasses> classes_;
  ByteAlphabet alphabet_;
};

}  // namespace skein
