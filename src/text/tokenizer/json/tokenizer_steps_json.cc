#include "text/tokenizer/json/tokenizer_steps_json.h"

#include <utility>

#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr std::string_view kNormalizer = "tokenizer.json: normalizer";
constexpr std::string_view kPreTokenizer = "tokenizer.json: pre_tokenizer";
constexpr std::string_view kDecoder = "tokenizer.json: decoder";

// {"pattern": {"String": ..}} or {"pattern": {"Regex": ..}}.
struct Pattern {
  std::string text;
  bool is_regex;
};

Result<Pattern> ReadPattern(JsonValue value, std::string_view where) {
  JsonValue pattern;
  if (value.at_key("pattern").get(pattern) == simdjson::SUCCESS) {
    std::string_view text;
    if (pattern.at_key("String").get(text) == simdjson::SUCCESS && !text.empty()) {
      return Pattern{std::string(text), false};
    }
    if (pattern.at_key("Regex").get(text) == simdjson::SUCCESS) {
      return Pattern{std::string(text), true};
    }
  }
  return JsonError(where, "'pattern' must be {\"String\": text} or {\"Regex\": text}, not empty");
}

Result<ReplaceRule> ReadReplace(JsonValue value, std::string_view where) {
  SKEIN_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(value, where));
  ReplaceRule rule;
  SKEIN_ASSIGN_OR_RETURN(rule.content, JsonString(value, "content", where));
  if (pattern.is_regex) {
    SKEIN_ASSIGN_OR_RETURN(rule.regex, Regex::Compile(pattern.text));
  } else {
    rule.literal = std::move(pattern.text);
  }
  return rule;
}

Result<std::string> ReadOneCharacter(JsonValue value, std::string_view key,
                                     std::string_view where) {
  SKEIN_ASSIGN_OR_RETURN(std::string text, JsonString(value, key, where));
  size_t pos = 0;
  if (!text.empty()) NextCodePoint(text, &pos);
  if (text.empty() || pos != text.size()) {
    return JsonError(where, "'" + std::string(key) + "' must be one character");
  }
  return text;
}

Result<SplitBehavior> ReadBehavior(JsonValue value) {
  SKEIN_ASSIGN_OR_RETURN(const std::string name, JsonString(value, "behavior", kPreTokenizer));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return JsonError(kPreTokenizer, "'behavior' is '" + name +
                                      "'; allowed are Removed, Isolated, MergedWithPrevious, "
                                      "MergedWithNext and Contiguous");
}

Result<PreTokenizer::PrependScheme> ReadPrependScheme(JsonValue value, std::string_view where) {
  using Scheme = PreTokenizer::PrependScheme;
  std::string name = "always";  // for older files, which have only add_prefix_space
  if (JsonHas(value, "prepend_scheme")) {
    SKEIN_ASSIGN_OR_RETURN(name, JsonString(value, "prepend_scheme", where));
  }
  SKEIN_ASSIGN_OR_RETURN(const bool add_prefix_space,
                         JsonBool(value, "add_prefix_space", true, where));
  if (!add_prefix_space && name != "never") {
    return JsonError(where, "add_prefix_space false contradicts prepend_scheme '" + name + "'");
  }
  if (name == "always") return Scheme::kAlways;
  if (name == "first") return Scheme::kFirst;
  if (name == "never") return Scheme::kNever;
  return JsonError(where,
                   "'prepend_scheme' is '" + name + "'; allowed are always, first and never");
}

Result<PreTokenizer::Split> ReadSplit(JsonValue value) {
  SKEIN_ASSIGN_OR_RETURN(const Pattern pattern, ReadPattern(value, kPreTokenizer));
  PreTokenizer::Split split;
  SKEIN_ASSIGN_OR_RETURN(split.behavior, ReadBehavior(value));
  SKEIN_ASSIGN_OR_RETURN(split.invert, JsonBool(value, "invert", false, kPreTokenizer));
  if (pattern.is_regex) split.scanner = SplitScanner::ForPattern(pattern.text);
  if (!split.scanner) {
    SKEIN_ASSIGN_OR_RETURN(split.regex, pattern.is_regex ? Regex::Compile(pattern.text)
                                                         : Regex::Literal(pattern.text));
  }
  return split;
}

Result<Normalizer::Bert> ReadBertNormalizer(JsonValue value) {
  Normalizer::Bert step;
  SKEIN_ASSIGN_OR_RETURN(step.clean_text, JsonBool(value, "clean_text", true, kNormalizer));
  SKEIN_ASSIGN_OR_RETURN(step.handle_chinese_chars,
                         JsonBool(value, "handle_chinese_chars", true, kNormalizer));
  SKEIN_ASSIGN_OR_RETURN(step.lowercase, JsonBool(value, "lowercase", true, kNormalizer));
  SKEIN_ASSIGN_OR_RETURN(step.strip_accents,
                         JsonBool(value, "strip_accents", step.lowercase, kNormalizer));
  return step;
}

Result<PreTokenizer::ByteLevel> ReadByteLevel(JsonValue value) {
  PreTokenizer::ByteLevel step;
  SKEIN_ASSIGN_OR_RETURN(step.add_prefix_space,
                         JsonBool(value, "add_prefix_space", true, kPreTokenizer));
  SKEIN_ASSIGN_OR_RETURN(step.use_regex, JsonBool(value, "use_regex", true, kPreTokenizer));
  return step;
}

Result<PreTokenizer::Metaspace> ReadMetaspace(JsonValue value) {
  PreTokenizer::Metaspace step;
  SKEIN_ASSIGN_OR_RETURN(step.replacement, ReadOneCharacter(value, "replacement", kPreTokenizer));
  SKEIN_ASSIGN_OR_RETURN(step.prepend, ReadPrependScheme(value, kPreTokenizer));
  SKEIN_ASSIGN_OR_RETURN(step.split, JsonBool(value, "split", true, kPreTokenizer));
  return step;
}

}  // namespace

Status ReadNormalizer(JsonValue value, std::vector<Normalizer::Step>* steps) {
  if (value.is_null()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kNormalizer));
  if (type == "Sequence") {
    return JsonForEach(value, "normalizers", kNormalizer,
                       [steps](JsonValue item) { return ReadNormalizer(item, steps); });
  }
  if (type == "NFC") {
    steps->emplace_back(Normalizer::NfcStep{});
  } else if (type == "Prepend") {
    SKEIN_ASSIGN_OR_RETURN(std::string text, JsonString(value, "prepend", kNormalizer));
    steps->emplace_back(Normalizer::Prepend{std::move(text)});
  } else if (type == "Replace") {
    SKEIN_ASSIGN_OR_RETURN(ReplaceRule rule, ReadReplace(value, kNormalizer));
    steps->emplace_back(std::move(rule));
  } else if (type == "NFD" || type == "NFKC" || type == "NFKD") {
    steps->emplace_back(Normalizer::Form{type == "NFD"    ? NormalForm::kNfd
                                         : type == "NFKC" ? NormalForm::kNfkc
                                                          : NormalForm::kNfkd});
  } else if (type == "BertNormalizer") {
    SKEIN_ASSIGN_OR_RETURN(const Normalizer::Bert step, ReadBertNormalizer(value));
    steps->emplace_back(step);
  } else if (type == "Lowercase") {
    steps->emplace_back(Normalizer::Lowercase{});
  } else if (type == "StripAccents") {
    steps->emplace_back(Normalizer::StripAccents{});
  } else if (type == "Strip") {
    Normalizer::Strip step;
    SKEIN_ASSIGN_OR_RETURN(step.left, JsonBool(value, "strip_left", true, kNormalizer));
    SKEIN_ASSIGN_OR_RETURN(step.right, JsonBool(value, "strip_right", true, kNormalizer));
    steps->emplace_back(step);
  } else if (type == "Nmt") {
    steps->emplace_back(Normalizer::Nmt{});
  } else if (type == "ByteLevel") {
    steps->emplace_back(Normalizer::ByteLevel{});
  } else if (type == "Precompiled") {
    SKEIN_ASSIGN_OR_RETURN(const std::string charsmap,
                           JsonString(value, "precompiled_charsmap", kNormalizer));
    SKEIN_ASSIGN_OR_RETURN(Precompiled precompiled, Precompiled::Create(charsmap));
    steps->emplace_back(std::make_shared<const Precompiled>(std::move(precompiled)));
  } else {
    return NotSupported(kNormalizer, type);
  }
  return Status::Ok();
}

Status ReadPreTokenizer(JsonValue value, std::vector<PreTokenizer::Step>* steps) {
  if (value.is_null()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kPreTokenizer));
  if (type == "Sequence") {
    return JsonForEach(value, "pretokenizers", kPreTokenizer,
                       [steps](JsonValue item) { return ReadPreTokenizer(item, steps); });
  }
  if (type == "Split") {
    SKEIN_ASSIGN_OR_RETURN(PreTokenizer::Split step, ReadSplit(value));
    steps->emplace_back(std::move(step));
  } else if (type == "ByteLevel") {
    SKEIN_ASSIGN_OR_RETURN(PreTokenizer::ByteLevel step, ReadByteLevel(value));
    steps->emplace_back(std::move(step));
  } else if (type == "Metaspace") {
    SKEIN_ASSIGN_OR_RETURN(PreTokenizer::Metaspace step, ReadMetaspace(value));
    steps->emplace_back(std::move(step));
  } else if (type == "Digits") {
    SKEIN_ASSIGN_OR_RETURN(const bool individual,
                           JsonBool(value, "individual_digits", false, kPreTokenizer));
    steps->emplace_back(PreTokenizer::Digits{individual});
  } else if (type == "Punctuation") {
    SplitBehavior behavior = SplitBehavior::kIsolated;
    if (JsonHas(value, "behavior")) {
      SKEIN_ASSIGN_OR_RETURN(behavior, ReadBehavior(value));
    }
    steps->emplace_back(PreTokenizer::Punctuation{behavior});
  } else if (type == "BertPreTokenizer") {
    steps->emplace_back(PreTokenizer::Bert{});
  } else if (type == "Whitespace") {
    steps->emplace_back(PreTokenizer::Whitespace{});
  } else if (type == "WhitespaceSplit") {
    steps->emplace_back(PreTokenizer::WhitespaceSplit{});
  } else if (type == "CharDelimiterSplit") {
    SKEIN_ASSIGN_OR_RETURN(const std::string text,
                           ReadOneCharacter(value, "delimiter", kPreTokenizer));
    size_t pos = 0;
    steps->emplace_back(PreTokenizer::CharDelimiter{NextCodePoint(text, &pos)});
  } else if (type == "FixedLength") {
    SKEIN_ASSIGN_OR_RETURN(const int64_t length,
                           JsonInt(value, "length", 1, 1 << 20, kPreTokenizer));
    steps->emplace_back(PreTokenizer::FixedLength{static_cast<size_t>(length)});
  } else {
    return NotSupported(kPreTokenizer, type);
  }
  return Status::Ok();
}

Status ReadDecoder(JsonValue value, std::vector<Decoder::Step>* steps) {
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kDecoder));
  if (type == "Sequence") {
    return JsonForEach(value, "decoders", kDecoder,
                       [steps](JsonValue item) { return ReadDecoder(item, steps); });
  }
  if (type == "ByteLevel") {
    steps->emplace_back(Decoder::ByteLevel{});
  } else if (type == "ByteFallback") {
    steps->emplace_back(Decoder::ByteFallback{});
  } else if (type == "Fuse") {
    steps->emplace_back(Decoder::Fuse{});
  } else if (type == "Replace") {
    SKEIN_ASSIGN_OR_RETURN(ReplaceRule rule, ReadReplace(value, kDecoder));
    steps->emplace_back(std::move(rule));
  } else if (type == "Strip") {
    Decoder::Strip strip;
    SKEIN_ASSIGN_OR_RETURN(strip.content, ReadOneCharacter(value, "content", kDecoder));
    SKEIN_ASSIGN_OR_RETURN(const int64_t start, JsonInt(value, "start", 0, 1 << 20, kDecoder));
    SKEIN_ASSIGN_OR_RETURN(const int64_t stop, JsonInt(value, "stop", 0, 1 << 20, kDecoder));
    if (stop != 0) return NotSupported(kDecoder, "Strip with 'stop' " + std::to_string(stop));
    strip.start = static_cast<size_t>(start);
    steps->emplace_back(std::move(strip));
  } else if (type == "Metaspace") {
    Decoder::Metaspace metaspace;
    SKEIN_ASSIGN_OR_RETURN(metaspace.replacement, ReadOneCharacter(value, "replacement", kDecoder));
    SKEIN_ASSIGN_OR_RETURN(const auto scheme, ReadPrependScheme(value, kDecoder));
    metaspace.drop_in_first = scheme != PreTokenizer::PrependScheme::kNever;
    steps->emplace_back(std::move(metaspace));
  } else if (type == "WordPiece") {
    Decoder::WordPiece step;
    SKEIN_ASSIGN_OR_RETURN(step.prefix, JsonString(value, "prefix", kDecoder));
    SKEIN_ASSIGN_OR_RETURN(step.cleanup, JsonBool(value, "cleanup", true, kDecoder));
    steps->emplace_back(std::move(step));
  } else {
    return NotSupported(kDecoder, type);
  }
  return Status::Ok();
}

}  // namespace skein
