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

// The handling of the matches of a splitter.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// A text that is cut into adjacent pieces, none of them empty.
struct Pieces {
  std::string text;
  std::vector<size_t> ends;  // the end of each piece, ascending; the last is text.size()
};

// The pre-tokenizer of a tokenizer.json as a flat list of steps. It cuts a normalized text into
// pieces that merges never cross. Immutable.
class PreTokenizer {
 public:
  struct Split {
    std::optional<SplitScanner> scanner;  // if empty, regex is used
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
  struct Whitespace {};       // keeps words and runs of signs, removes white space
  struct WhitespaceSplit {};  // removes white space
  struct Bert {};             // removes white space, isolates each punctuation character
  struct CharDelimiter {
    uint32_t delimiter;  // the pieces do not contain it
  };
  struct FixedLength {
    size_t length;  // characters; not 0
  };
  using Step = std::variant<Split, Punctuation, Digits, ByteLevel, Metaspace, Whitespace,
                            WhitespaceSplit, Bert, CharDelimiter, FixedLength>;

  PreTokenizer(std::vector<Step> steps, std::shared_ptr<const CharClasses> classes);

  // Whether the last step spells pieces in the byte alphabet.
  bool byte_level_last() const {
    return !steps_.empty() && std::holds_alternative<ByteLevel>(steps_.back());
  }

  // The scanner whose matches are the pieces of Run with raw_bytes; null if there is none.
  const SplitScanner* whole_scanner() const { return whole_scanner_ ? &*whole_scanner_ : nullptr; }

  // Cuts `text` (valid UTF-8). `at_start`: the text begins at the beginning of the whole input.
  // With raw_bytes, a final ByteLevel step leaves the bytes as they are. Fails only if the regular
  // expression engine gives up.
  Status Run(std::string text, bool at_start, bool raw_bytes, Pieces* pieces) const;

  // Cuts every text of `pieces` into pieces in the byte alphabet, and keeps the alignment. Exact
  // for every pre-tokenizer.
  Status Run(std::vector<AlignedText>* pieces) const;
  // Whether Run needs the alignment to handle the beginning of the input correctly.
  bool needs_alignment() const;
  // Whether a step adds text only at the beginning of the whole input.
  bool depends_on_start() const;

 private:
  struct Match {
    size_t begin, end;
    bool is_match;
  };
  // Collects the parts into which a step cuts `piece`, in order. REQUIRES: the step only cuts.
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
