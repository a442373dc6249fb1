#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/aligned_text.h"
#include "text/tokenizer/models/byte_alphabet.h"
#include "text/tokenizer/precompiled.h"
#include "text/tokenizer/regex.h"
#include "text/unicode/nfc.h"
#include "text/unicode/normal_forms.h"

namespace skein {

// A rule that replaces a literal string, or the matches of a regular expression, by a fixed text.
struct ReplaceRule {
  std::string literal;  // used if there is no regex; not empty
  std::optional<Regex> regex;
  std::string content;

  Status Apply(std::string_view text, std::string* out) const;
  // Applies the rule and keeps the alignment.
  Status Apply(AlignedText* text) const;
};

// The normalizer of a tokenizer.json as a flat list of steps. Immutable.
class Normalizer {
 public:
  struct NfcStep {};
  struct Prepend {
    std::string text;  // put before every text that is not empty
  };
  struct Form {
    NormalForm form;
  };
  // BertNormalizer: the four changes that it makes, in this order.
  struct Bert {
    bool clean_text;            // drop control characters, turn all white space into spaces
    bool handle_chinese_chars;  // put spaces around ideographs
    bool strip_accents;         // decompose, drop nonspacing marks
    bool lowercase;
  };
  struct Lowercase {};
  struct StripAccents {};  // drop combining marks
  struct Strip {           // drop white space at the ends
    bool left, right;
  };
  struct Nmt {};        // control characters and unusual spaces, as in machine translation (NMT)
  struct ByteLevel {};  // spell bytes in the byte alphabet
  using Step = std::variant<NfcStep, Prepend, ReplaceRule, Form, Bert, Lowercase, StripAccents,
                            Strip, Nmt, ByteLevel, std::shared_ptr<const Precompiled>>;

  explicit Normalizer(std::vector<Step> steps);

  // REQUIRES: valid UTF-8. Fails only if the regular expression engine gives up.
  Status Normalize(std::string_view text, std::string* out) const;
  // True if Normalize would return `text` unchanged; cheaper than calling Normalize.
  bool IsNormalized(std::string_view text) const;
  // Normalizes the text and keeps the alignment. Exact for every step.
  Status Normalize(AlignedText* text) const;
  bool empty() const { return steps_.empty(); }
  // Whether the normalizer does nothing, or only NFC.
  bool is_at_most_nfc() const;
  // Whether Normalize gives the text of the reference for every part of a text. Otherwise later
  // stages need the alignment: use Normalize(AlignedText*).
  bool is_simple() const { return is_simple_; }
  // Whether a step may drop the beginning of a text.
  bool may_drop() const;

 private:
  void ApplyForm(NormalForm form, AlignedText* text) const;
  void ApplyLowercase(AlignedText* text) const;
  void ApplyBert(const Bert& step, AlignedText* text) const;

  std::vector<Step> steps_;
  std::optional<Nfc> nfc_;                    // set if a step needs it
  std::shared_ptr<const NormalForms> forms_;  // set if a step needs it
  // Code point -> index of its length; filled if a step needs it.
  std::unordered_map<uint32_t, uint32_t> lower_;
  ByteAlphabet alphabet_;
  bool is_simple_ = true;
};

}  // namespace skein
