#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace skein {

// A regular expression of a tokenizer, with the matches of the reference's engine (Oniguruma). Only
// constructs with the same meaning in both engines are accepted; character classes are expanded
// from the reference's own tables. An error names any other construct. Immutable.
class Regex {
 public:
  // kUnsupported names a refused construct. Expressions that can match the empty text are refused,
  // too.
  static Result<Regex> Compile(std::string_view pattern);
  // Compiles an expression that matches exactly `text`.
  static Result<Regex> Literal(std::string_view text);

  // Finds the leftmost match [*begin, *end) at or after `from`; *found is false if there is none.
  // kInternal if the engine gives up (on a pathological text).
  Status Find(std::string_view text, size_t from, bool* found, size_t* begin, size_t* end) const;

 private:
  struct Free {
    void operator()(void* code) const;
  };
  explicit Regex(void* code) : code_(code) {}
  static Result<Regex> CompileTranslated(const std::string& translated, std::string_view source);

  std::unique_ptr<void, Free> code_;  // pcre2_code
};

// Translates the expression for PCRE2; kUnsupported names a construct that is refused.
Result<std::string> TranslateRegex(std::string_view pattern);

}  // namespace skein
