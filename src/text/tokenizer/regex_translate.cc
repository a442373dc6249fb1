#include <array>
#include <cctype>
#include <cstdio>
#include <vector>

#include "text/tokenizer/regex.h"
#include "text/unicode/unicode_tables.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr std::array<std::string_view, kNumCategories> kCategoryNames = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn", "Cs"};

// English contractions, in upper or lower case: the only caseless group that tokenizers use. In the
// reference, long s (U+017F) equals s without regard to case.
constexpr std::string_view kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr std::string_view kContractionsSpelt =
    "(?:'[sS\\x{17f}]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";

using Ranges = std::vector<CodePointRange>;

Ranges CategoryRanges(std::string_view name) {
  Ranges ranges;
  for (size_t i = 0; i < kCategoryRuns.size(); ++i) {
    if (!kCategoryNames[kCategoryRuns[i] & 0xFF].starts_with(name)) continue;
    const uint32_t first = kCategoryRuns[i] >> 8;
    const uint32_t end = i + 1 < kCategoryRuns.size() ? kCategoryRuns[i + 1] >> 8 : 0x110000;
    if (!ranges.empty() && ranges.back().last + 1 == first) {
      ranges.back().last = end - 1;
    } else {
      ranges.push_back({first, end - 1});
    }
  }
  return ranges;
}

Ranges Complement(const Ranges& ranges) {
  Ranges out;
  uint32_t next = 0;
  for (const CodePointRange& range : ranges) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next < 0x110000) out.push_back({next, 0x10FFFF});
  return out;
}

// Surrogates are left out: PCRE2 refuses them in UTF mode, and no valid text contains them.
std::string Spell(const Ranges& ranges) {
  std::string out;
  const auto add = [&out](uint32_t first, uint32_t last) {
    if (first > last) return;
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "\\x{%x}-\\x{%x}", first, last);
    out += buffer;
  };
  for (const CodePointRange& range : ranges) {
    if (range.last < 0xD800 || range.first > 0xDFFF) {
      add(range.first, range.last);
    } else {
      if (range.first < 0xD800) add(range.first, 0xD7FF);
      if (range.last > 0xDFFF) add(0xE000, range.last);
    }
  }
  return out;
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> Run() {
    while (pos_ < pattern_.size()) SKEIN_RETURN_IF_ERROR(Next());
    return std::move(out_);
  }

 private:
  Status Refuse(const std::string& what) const {
    return Status(StatusCode::kUnsupported, "regular expression '" + std::string(pattern_) +
                                                "': " + what + " at byte " + std::to_string(pos_) +
                                                " is not supported");
  }
  bool At(std::string_view text) const { return pattern_.substr(pos_).starts_with(text); }
  void Take(size_t bytes) {
    out_ += pattern_.substr(pos_, bytes);
    pos_ += bytes;
  }

  Status Next() {
    const char c = pattern_[pos_];
    if (At(kContractions)) {
      out_ += kContractionsSpelt;
      pos_ += kContractions.size();
      return Status::Ok();
    }
    switch (c) {
      case '(':
        return Group();
      case '[':
        return Class();
      case '\\':
        return Escape(false);
      case '^':
      case '$':
        return Refuse(std::string("the anchor ") + c);
      case '?':
      case '*':
      case '+':
        Take(1);
        if (pos_ < pattern_.size() && (pattern_[pos_] == '?' || pattern_[pos_] == '+')) Take(1);
        return Status::Ok();
      case '{':
        return Interval();
      default:  // literals, '|', ')', and '.' (any character but a line feed, in both engines)
        Take(1);
        return Status::Ok();
    }
  }

  Status Group() {
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (At(opening)) {
        Take(opening.size());
        return Status::Ok();
      }
    }
    if (At("(?") || At("(*")) return Refuse("the group " + std::string(pattern_.substr(pos_, 4)));
    Take(1);
    return Status::Ok();
  }

  // Reads {n}, {n,} or {n,m}. A quantifier sign behind it is refused: it has different meanings in
  // the two engines.
  Status Interval() {
    size_t end = pos_ + 1;
    const auto digits = [&] {
      const size_t begin = end;
      while (end < pattern_.size() && std::isdigit(static_cast<unsigned char>(pattern_[end]))) {
        ++end;
      }
      return end > begin;
    };
    if (!digits()) return Refuse("'{' without a number");
    if (end < pattern_.size() && pattern_[end] == ',') {
      ++end;
      digits();
    }
    if (end == pattern_.size() || pattern_[end] != '}') return Refuse("an open '{'");
    ++end;
    if (end < pattern_.size() && (pattern_[end] == '+' || pattern_[end] == '?')) {
      return Refuse("a sign behind an interval");
    }
    Take(end - pos_);
    return Status::Ok();
  }

  void EmitRanges(const Ranges& ranges, bool inside_class) {
    const std::string spelt = Spell(ranges);
    out_ += inside_class ? spelt : "[" + spelt + "]";
  }

  Status Property(bool inside_class) {
    bool negated = pattern_[pos_ + 1] == 'P';
    const size_t close = pattern_.find('}', pos_);
    if (pos_ + 2 >= pattern_.size() || pattern_[pos_ + 2] != '{' ||
        close == std::string_view::npos) {
      return Refuse("a property without braces");
    }
    std::string_view name = pattern_.substr(pos_ + 3, close - pos_ - 3);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const Ranges ranges = name.empty() || name.size() > 2 ? Ranges{} : CategoryRanges(name);
    if (ranges.empty()) return Refuse("the property " + std::string(name));
    EmitRanges(negated ? Complement(ranges) : ranges, inside_class);
    pos_ = close + 1;
    return Status::Ok();
  }

  // Reads \uHHHH or \x{H..}.
  Status CodePoint() {
    const bool braces = At("\\x{");
    const size_t begin = pos_ + (braces ? 3 : 2);
    size_t end = begin;
    while (end < pattern_.size() && std::isxdigit(static_cast<unsigned char>(pattern_[end])) &&
           end - begin < (braces ? 6u : 4u)) {
      ++end;
    }
    const bool complete = braces ? end > begin && end < pattern_.size() && pattern_[end] == '}'
                                 : pattern_[pos_ + 1] == 'u' && end - begin == 4;
    if (!complete) return Refuse("the escape " + std::string(pattern_.substr(pos_, 3)));
    out_.append("\\x{").append(pattern_.substr(begin, end - begin)).append("}");
    pos_ = end + (braces ? 1 : 0);
    return Status::Ok();
  }

  Status Escape(bool inside_class) {
    if (pos_ + 1 == pattern_.size()) return Refuse("a lone backslash");
    const char c = pattern_[pos_ + 1];
    if (c == 'p' || c == 'P') return Property(inside_class);
    if (c == 'u' || c == 'x') return CodePoint();
    if (c == 's' || c == 'S') {
      const Ranges spaces(kSpaceRanges.begin(), kSpaceRanges.end());
      EmitRanges(c == 's' ? spaces : Complement(spaces), inside_class);
    } else if (c == 'd' || c == 'D') {
      const Ranges digits = CategoryRanges("Nd");
      EmitRanges(c == 'd' ? digits : Complement(digits), inside_class);
    } else if (c == 'r' || c == 'n' || c == 't' || c == 'f' ||
               std::ispunct(static_cast<unsigned char>(c))) {
      out_ += '\\';
      out_ += c;
    } else {
      return Refuse(std::string("the escape \\") + c);
    }
    pos_ += 2;
    return Status::Ok();
  }

  Status Class() {
    Take(1);
    if (At("^")) Take(1);
    if (At("]")) return Refuse("']' first in a class");
    while (pos_ < pattern_.size() && pattern_[pos_] != ']') {
      if (At("[")) return Refuse("a class inside a class");
      if (At("&&")) return Refuse("an intersection of classes");
      if (At("\\")) {
        SKEIN_RETURN_IF_ERROR(Escape(true));
      } else {
        Take(1);
      }
    }
    if (pos_ == pattern_.size()) return Refuse("an open class");
    Take(1);
    return Status::Ok();
  }

  std::string_view pattern_;
  size_t pos_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> TranslateRegex(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace skein
