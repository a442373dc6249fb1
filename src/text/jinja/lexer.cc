#include "text/jinja/lexer.h"

#include <array>
#include <charconv>

#include "text/jinja/text.h"

namespace skein::jinja {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c); }

// Turns every line end into \n and drops one line end at the very end.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(NormalizeNewlines(source)), rest_(source_) {}

  Result<std::vector<Token>> Run() {
    while (status_.ok() && pos_ < rest_.size()) LexRoot();
    if (!status_.ok()) return status_;
    Add(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  void Fail(const std::string& message) { FailAs(StatusCode::kInvalidArgument, message); }
  void FailAs(StatusCode code, const std::string& message) {
    if (status_.ok()) {
      status_ = Status(code, "chat template: line " + std::to_string(line_) + ": " + message);
    }
  }

  Token& Add(TokenKind kind, std::string_view text = {}) {
    tokens_.push_back(Token{kind, line_, std::string(text)});
    return tokens_.back();
  }

  bool StartsWith(std::string_view text) const { return rest_.substr(pos_).starts_with(text); }

  // Moves to `end`, the end of the text that was read last.
  void Advance(size_t end) {
    for (size_t i = pos_; i < end; ++i) line_ += rest_[i] == '\n';
    if (end > pos_) line_starting_ = rest_[end - 1] == '\n';
    pos_ = end;
  }

  size_t SkipSpace(size_t from) const {
    while (from < rest_.size()) {
      size_t next = from;
      if (!IsSpace(NextCodePoint(rest_, &next))) break;
      from = next;
    }
    return from;
  }

  // The text before a tag, without the white space that the tag's sign or lstrip_blocks removes.
  std::string_view TrimBeforeTag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return Strip(text, nullptr, false, true);
    if (sign == '+' || is_variable) return text;
    const size_t newline = text.rfind('\n');
    if (newline == std::string_view::npos && !line_starting_) return text;
    const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    const bool only_space = Strip(text.substr(line_start), nullptr, true, false).empty();
    return only_space ? text.substr(0, line_start) : text;
  }

  // The position after a tag's end. `end` is the position of "%}" or "#}" after the sign. The sign
  // '-' removes all white space after the tag; without a sign, one newline is removed.
  size_t BehindTagEnd(size_t end, char sign) const {
    end += 2;
    if (sign == '-') return SkipSpace(end);
    if (sign == 0 && end < rest_.size() && rest_[end] == '\n') return end + 1;
    return end;
  }

  char SignAt(size_t pos) const {
    return pos < rest_.size() && (rest_[pos] == '-' || rest_[pos] == '+') ? rest_[pos] : '\0';
  }

  void LexRoot() {
    size_t tag = pos_;
    while (true) {
      tag = rest_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= rest_.size()) {
        Add(TokenKind::kData, rest_.substr(pos_));
        Advance(rest_.size());
        return;
      }
      const char second = rest_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
      ++tag;
    }
    const char type = rest_[tag + 1];
    const char sign = SignAt(tag + 2);
    const std::string_view data = TrimBeforeTag(rest_.substr(pos_, tag - pos_), sign, type == '{');
    if (!data.empty()) Add(TokenKind::kData, data);
    Advance(tag);
    const size_t inside = tag + (sign != 0 ? 3 : 2);
    if (type == '#') return LexComment(inside);
    // The content of a raw block need not consist of tokens, so the lexer refuses the tag.
    if (type == '%' && rest_.substr(SkipSpace(inside)).starts_with("raw")) {
      return FailAs(StatusCode::kUnsupported, "tag 'raw' is not supported");
    }
    Add(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin);
    Advance(inside);
    LexTag(type);
  }

  void LexComment(size_t inside) {
    const size_t end = rest_.find("#}", inside);
    if (end == std::string_view::npos) return Fail("missing end of comment tag");
    const char sign = end > inside ? SignAt(end - 1) : '\0';
    Advance(BehindTagEnd(end, sign));
  }

  // Reads the inside of a tag {{ }} or {% %}, and its end.
  void LexTag(char type) {
    const std::string_view end = type == '{' ? "}}" : "%}";
    std::string open_brackets;
    while (status_.ok()) {
      if (open_brackets.empty()) {
        const char sign = SignAt(pos_);
        const bool takes_sign = sign == '-' || (sign == '+' && type == '%');
        const size_t at = pos_ + (takes_sign ? 1 : 0);
        if (rest_.substr(at).starts_with(end)) {
          Add(type == '{' ? TokenKind::kVariableEnd : TokenKind::kBlockEnd);
          const bool trims_newline = type == '%' || takes_sign;
          return Advance(trims_newline ? BehindTagEnd(at, takes_sign ? sign : '\0') : at + 2);
        }
      }
      const size_t next = SkipSpace(pos_);
      if (next > pos_) {
        Advance(next);
        continue;
      }
      if (pos_ >= rest_.size()) return Fail("unexpected end of template inside a tag");
      const char c = rest_[pos_];
      if (IsDigit(c)) {
        LexNumber();
      } else if (IsNameStart(c)) {
        size_t stop = pos_;
        while (stop < rest_.size() && IsNameChar(rest_[stop])) ++stop;
        Add(TokenKind::kName, rest_.substr(pos_, stop - pos_));
        Advance(stop);
      } else if (c == '\'' || c == '"') {
        LexString(c);
      } else {
        LexOperator(&open_brackets);
      }
    }
  }

  size_t DigitsEnd(size_t pos) const {
    while (pos < rest_.size() && IsDigit(rest_[pos])) ++pos;
    return pos;
  }

  void LexNumber() {
    const size_t digits_end = DigitsEnd(pos_);
    size_t end = digits_end;
    if (end + 1 < rest_.size() && rest_[end] == '.' && IsDigit(rest_[end + 1])) {
      end = DigitsEnd(end + 1);
    }
    if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
      const size_t sign = SignAt(end + 1) != 0 ? 1 : 0;
      if (end + 1 + sign < rest_.size() && IsDigit(rest_[end + 1 + sign])) {
        end = DigitsEnd(end + 1 + sign);
      }
    }
    // After a dot, digits are an index: x.0.1 has two indices.
    const Token& previous = tokens_.back();
    const bool is_index = previous.kind == TokenKind::kOperator && previous.text == ".";
    const bool is_float = end > digits_end && !is_index;
    if (!is_float) end = digits_end;
    const std::string_view text = rest_.substr(pos_, end - pos_);
    const char next = end < rest_.size() ? rest_[end] : '\0';
    const bool has_base = text == "0" && std::string_view("xXoObB").find(next) != std::string::npos;
    if (next == '_' || has_base) {  // a number such as 1_000 or 0x1F
      return FailAs(StatusCode::kUnsupported,
                    "a number with '" + std::string(1, next) + "' is not supported");
    }
    if (is_float) {
      const auto value = ParseFloat(text);
      if (!value) return Fail("malformed number");
      Add(TokenKind::kFloat, text).number = *value;
    } else {
      if (text.size() > 1 && text[0] == '0' &&
          text.find_first_not_of('0') != std::string_view::npos) {
        return Fail("integer '" + std::string(text) + "' starts with 0");
      }
      const auto value = ParseInteger(text);
      if (!value) return Fail("integer '" + std::string(text) + "' is too large");
      Add(TokenKind::kInteger, text).integer = *value;
    }
    Advance(end);
  }

  void LexString(char quote) {
    size_t end = pos_ + 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return Fail("string without an end");
    std::string text;
    if (!Unescape(rest_.substr(pos_ + 1, end - pos_ - 1), &text)) return;
    Add(TokenKind::kString, text);
    Advance(end + 1);
  }

  // Resolves Python's string escapes.
  bool Unescape(std::string_view raw, std::string* out) {
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\' || i + 1 >= raw.size()) {
        out->push_back(raw[i]);
        continue;
      }
      const char c = raw[++i];
      constexpr std::string_view kLetters = "abfnrtv\\'\"";
      constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
      const size_t letter = kLetters.find(c);
      if (letter != std::string_view::npos) {
        out->push_back(kMeanings[letter]);
      } else if (c == '\n') {
        continue;  // a backslash before a line end continues the line
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t num_digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        if (!AppendEscaped(raw.substr(i + 1, num_digits), num_digits, out)) return false;
        i += num_digits;
      } else if (c == 'N' || (c >= '0' && c <= '7')) {
        FailAs(StatusCode::kUnsupported,
               std::string("string escape '\\") + c + "' is not supported");
        return false;
      } else {  // not an escape: the backslash is kept
        out->push_back('\\');
        out->push_back(c);
      }
    }
    return true;
  }

  bool AppendEscaped(std::string_view digits, size_t num_digits, std::string* out) {
    uint32_t value = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != num_digits || end.ptr != digits.data() + num_digits || value > 0x10FFFF ||
        (value >= 0xD800 && value < 0xE000)) {
      Fail("string escape with '" + std::string(digits) + "' names no character");
      return false;
    }
    AppendUtf8(value, out);
    return true;
  }

  void LexOperator(std::string* open_brackets) {
    constexpr std::array<std::string_view, 6> kDouble = {"//", "**", "==", "!=", ">=", "<="};
    std::string_view op;
    for (const std::string_view candidate : kDouble) {
      if (StartsWith(candidate)) op = rest_.substr(pos_, 2);
    }
    if (op.empty()) op = rest_.substr(pos_, 1);
    const char c = op[0];
    if (op.size() == 1 && std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string::npos) {
      if (static_cast<unsigned char>(c) >= 0x80) {
        return FailAs(StatusCode::kUnsupported, "a name outside ASCII is not supported");
      }
      return Fail("unexpected character '" + std::string(op) + "'");
    }
    if (c == '(' || c == '[' || c == '{') {
      open_brackets->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_brackets->empty() || open_brackets->back() != c) {
        return Fail("unexpected '" + std::string(op) + "'");
      }
      open_brackets->pop_back();
    }
    Add(TokenKind::kOperator, op);
    Advance(pos_ + op.size());
  }

  const std::string source_;
  const std::string_view rest_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // whether the text that was read last ended a line
  std::vector<Token> tokens_;
  Status status_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  if (!IsValidUtf8(source)) {
    return Status(StatusCode::kInvalidArgument, "chat template: not valid UTF-8");
  }
  return Lexer(source).Run();
}

}  // namespace skein::jinja
