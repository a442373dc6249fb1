#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/nfc.h"
#include "text/regex.h"

namespace skein {

// What replaces what in a text: a literal string or a regular expression, by literal content.
struct ReplaceRule {
  std::string literal;  // used where there is no regex; not empty
  std::optional<Regex> regex;
  std::string content;

  Status Apply(std::string_view text, std::string* out) const;
};

// The normalizer of a tokenizer.json as a list of steps; none of them is nested. Immutable.
class Normalizer {
 public:
  struct NfcStep {};
  struct Prepend {
    std::string text;  // before every text that is not empty
  };
  using Step = std::variant<NfcStep, Prepend, ReplaceRule>;

  explicit Normalizer(std::vector<Step> steps);

  // REQUIRES: valid UTF-8. Fails only where a regular expression gave up.
  Status Normalize(std::string_view text, std::string* out) const;
  // If true, Normalize would give `text` itself; cheaper than finding out by Normalize.
  bool IsNormalized(std::string_view text) const;
  bool empty() const { return steps_.empty(); }

 private:
  std::vector<Step> steps_;
  std::optional<Nfc> nfc_;  // if a step needs it
};

}  // namespace skein
