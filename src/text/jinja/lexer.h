#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/jinja/value.h"

namespace skein::jinja {

enum class TokenKind {
  kData,           // text outside tags; `text`
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kName,           // `text`
  kString,         // `text`, escapes resolved
  kInteger,        // `integer`
  kFloat,          // `number`
  kOperator,       // `text`
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;
  Integer integer = 0;
  double number = 0;
};

// The tokens of a template; the last token is kEnd. Removes white space as Jinja does with
// trim_blocks and lstrip_blocks on and keep_trailing_newline off. kInvalidArgument names the line.
Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace skein::jinja
