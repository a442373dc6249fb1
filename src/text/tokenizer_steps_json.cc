#include "text/tokenizer_steps_json.h"

#include <limits>
#include <utility>

#include "text/utf8.h"

namespace skein {
namespace {

constexpr std::string_view kNormalizer = "tokenizer.json: normalizer";
constexpr std::string_view kPreTokenizer = "tokenizer.json: pre_tokenizer";
constexpr std::string_view kDecoder = "tokenizer.json: decoder";
constexpr std::string_view kPostProcessor = "tokenizer.json: post_processor";

// Calls `read` for each member of the array `key`.
template <typename Read>
Status ForEach(JsonValue value, std::string_view key, std::string_view where, Read read) {
  SKEIN_ASSIGN_OR_RETURN(const simdjson::dom::array items, JsonArray(value, key, where));
  for (const JsonValue item : items) SKEIN_RETURN_IF_ERROR(read(item));
  return Status::Ok();
}

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
  std::string name = "always";  // before the scheme there was only add_prefix_space
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

// ["token", id], as RobertaProcessing and BertProcessing name their tokens.
Result<TokenId> ReadTokenPair(JsonValue value, std::string_view key) {
  simdjson::dom::array pair;
  int64_t id = 0;
  if (value.at_key(key).get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
      pair.at(1).get(id) != simdjson::SUCCESS || id < 0 ||
      id > std::numeric_limits<TokenId>::max()) {
    return JsonError(kPostProcessor, "'" + std::string(key) + "' must be [token, id]");
  }
  return static_cast<TokenId>(id);
}

Status ReadTemplate(JsonValue value, std::vector<TokenId>* prefix, std::vector<TokenId>* suffix) {
  std::vector<TokenId> before, after;
  int num_sequences = 0;
  SKEIN_RETURN_IF_ERROR(ForEach(value, "single", kPostProcessor, [&](JsonValue piece) -> Status {
    JsonValue part;
    if (piece.at_key("Sequence").get(part) == simdjson::SUCCESS) {
      SKEIN_ASSIGN_OR_RETURN(const std::string id, JsonString(part, "id", kPostProcessor));
      if (id != "A") return NotSupported(kPostProcessor, "the sequence " + id + " in 'single'");
      ++num_sequences;
      return Status::Ok();
    }
    if (piece.at_key("SpecialToken").get(part) != simdjson::SUCCESS) {
      return JsonError(kPostProcessor, "'single' must be of Sequence and SpecialToken");
    }
    SKEIN_ASSIGN_OR_RETURN(const std::string name, JsonString(part, "id", kPostProcessor));
    JsonValue tokens, token;
    if (value.at_key("special_tokens").get(tokens) != simdjson::SUCCESS ||
        tokens.at_key(name).get(token) != simdjson::SUCCESS) {
      return JsonError(kPostProcessor, "'" + name + "' is not in 'special_tokens'");
    }
    return ForEach(token, "ids", kPostProcessor, [&](JsonValue item) -> Status {
      int64_t id = 0;
      if (item.get(id) != simdjson::SUCCESS || id < 0 || id > std::numeric_limits<TokenId>::max()) {
        return JsonError(kPostProcessor, "an id of '" + name + "' is not a token id");
      }
      (num_sequences == 0 ? before : after).push_back(static_cast<TokenId>(id));
      return Status::Ok();
    });
  }));
  if (num_sequences != 1) {
    return NotSupported(kPostProcessor, "'single' with other than one sequence A");
  }
  prefix->insert(prefix->begin(), before.begin(), before.end());
  suffix->insert(suffix->end(), after.begin(), after.end());
  return Status::Ok();
}

}  // namespace

Status ReadNormalizer(JsonValue value, std::vector<Normalizer::Step>* steps) {
  if (value.is_null()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kNormalizer));
  if (type == "Sequence") {
    return ForEach(value, "normalizers", kNormalizer,
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
  } else {
    return NotSupported(kNormalizer, type);
  }
  return Status::Ok();
}

Status ReadPreTokenizer(JsonValue value, std::vector<PreTokenizer::Step>* steps) {
  if (value.is_null()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kPreTokenizer));
  if (type == "Sequence") {
    return ForEach(value, "pretokenizers", kPreTokenizer,
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
  } else {
    return NotSupported(kPreTokenizer, type);
  }
  return Status::Ok();
}

Status ReadDecoder(JsonValue value, std::vector<Decoder::Step>* steps) {
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kDecoder));
  if (type == "Sequence") {
    return ForEach(value, "decoders", kDecoder,
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
  } else {
    return NotSupported(kDecoder, type);
  }
  return Status::Ok();
}

Status ReadPostProcessor(JsonValue value, std::vector<TokenId>* prefix,
                         std::vector<TokenId>* suffix) {
  if (value.is_null()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const std::string type, JsonString(value, "type", kPostProcessor));
  if (type == "Sequence") {
    return ForEach(value, "processors", kPostProcessor,
                   [&](JsonValue item) { return ReadPostProcessor(item, prefix, suffix); });
  }
  if (type == "ByteLevel") return Status::Ok();  // about offsets only
  if (type == "TemplateProcessing") return ReadTemplate(value, prefix, suffix);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    SKEIN_ASSIGN_OR_RETURN(const TokenId cls, ReadTokenPair(value, "cls"));
    SKEIN_ASSIGN_OR_RETURN(const TokenId sep, ReadTokenPair(value, "sep"));
    prefix->insert(prefix->begin(), cls);
    suffix->push_back(sep);
    return Status::Ok();
  }
  return NotSupported(kPostProcessor, type);
}

}  // namespace skein
