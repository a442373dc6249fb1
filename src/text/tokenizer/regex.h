#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// A regular expression of a tokenizer, matched as the reference's engine (Oniguruma) does. Only
// constructs that mean the same in both are taken, with the character classes spelt out from the
// reference's own tables; everything else is refused by name. Immutable.
class Regex {
 public:
  // kUnsupported names the construct; an expression that can match nothing is refused too.
  static Result<Regex> Compile(std::string_view pattern);
  // Matches exactly `text`.
  static Result<Regex> Literal(std::string_view text);

  // The first match at or behind `from`, leftmost, as [*begin, *end); false if there is none.
  // kInternal if the engine gave up (a pathological text).
  Status Find(std::string_view text, size_t from, bool* found, size_t* begin, size_t* end) const;

 private:
  struct Free {
    void operator()(void* code) const;
  };
  explicit Regex(void* code) : code_(code) {}
  static Result<Regex> CompileTranslated(const std::string& translated, std::string_view source);

  std::unique_ptr<void, Free> code_;  // pcre2_code
};

// The expression in PCRE2's language; kUnsupported names what is not taken.
Result<std::string> TranslateRegex(std::string_view pattern);

}  // namespace skein
