#include "apps/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/gguf/gguf_encoder_tokenizer.h"
#include "apps/gguf/gguf_vocabulary.h"
#include "server/json/json.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr char kModelKey[] = "tokenizer.ggml.model";
constexpr char kPreKey[] = "tokenizer.ggml.pre";
constexpr char kMergesKey[] = "tokenizer.ggml.merges";
constexpr char kTemplateKey[] = "tokenizer.chat_template";
constexpr char kMmbert[] = "mmbert";    // of merges of characters, between spaces
constexpr char kWordMark[] = "\u2581";  // stands for a space in merges of characters

Json ByteLevel(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", use_regex},
          {"use_regex", use_regex}};
}

Json InTurn(Json first, Json second) {
  return {{"type", "Sequence"},
          {"pretokenizers", Json::array({std::move(first), std::move(second)})}};
}

Json SplitCuts(const std::string& regex) {
  return InTurn({{"type", "Split"},
                 {"pattern", {{"Regex", regex}}},
                 {"behavior", "Isolated"},
                 {"invert", false}},
                ByteLevel(false));
}

// The cuts of Llama 3 and its kin, which differ in how many digits stay together and in whether
// marks are part of a word.
Json WordCuts(const char* digits, const char* marks = "") {
  const std::string letters = std::string("[\\p{L}") + marks + "]+|";
  return SplitCuts(std::string("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?") +
                   (*marks == '\0' ? std::string("\\p{L}+|") : letters) + digits +
                   "| ?[^\\s\\p{L}" + marks + "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
}

// The cuts of GPT-4o: words end before a capital, and contractions stay at their word.
Json CasedWordCuts() {
  const std::string upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
  const std::string lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
  const std::string begin = "[^\\r\\n\\p{L}\\p{N}]?", end = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|";
  return SplitCuts(begin + upper + "*" + lower + "+" + end + begin + upper + "+" + lower + "*" +
                   end +
                   "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
}

constexpr GgufPreTokenizer kPreTokenizers[] = {
    {"gpt-2", [] { return ByteLevel(true); }},
    {"llama-bpe", [] { return WordCuts("\\p{N}{1,3}"); }, false, true, true},
    {"qwen2", [] { return WordCuts("\\p{N}"); }, true},
    {"smollm",
     [] {
       return InTurn({{"type", "Digits"}, {"individual_digits", true}}, ByteLevel(true));
     }},
    {"qwen35", [] { return WordCuts("\\p{N}", "\\p{M}"); }, true},
    {"gpt-4o", CasedWordCuts},
    {.name = "roberta-bpe", .cuts = [] { return ByteLevel(true); }, .num_separators = 2},
    {.name = "modern-bert",
     .cuts = [] { return ByteLevel(true); },
     .composes = true,
     .num_separators = 1},
};

Result<const GgufPreTokenizer*> FindPreTokenizer(const GgufMetadata& metadata) {
  SKEIN_ASSIGN_OR_RETURN(const auto pre, metadata.String(kPreKey));
  if (!pre) return metadata.Error(kPreKey, "is missing");
  std::string known;
  for (const GgufPreTokenizer& entry : kPreTokenizers) {
    if (*pre == entry.name) return &entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return metadata.Unsupported(
      kPreKey, "is '" + std::string(*pre) + "'; supported are " + known + ", " + kMmbert);
}

// Makes a BPE model without merges.
Json BpeModel(const std::vector<std::string_view>& tokens) {
  Json model;
  model["type"] = "BPE";
  for (const char* absent :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    model[absent] = nullptr;
  }
  for (const char* flag : {"fuse_unk", "byte_fallback", "ignore_merges"}) model[flag] = false;
  // ordered_json would compare a new member with every earlier one; its base type does not.
  auto& vocab = (model["vocab"] = Json::object()).get_ref<Json::object_t&>();
  vocab.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    vocab.Container::emplace_back(std::string(tokens[id]), id);
  }
  model["merges"] = Json::array();
  return model;
}

Result<Json> ReadMergesOfScores(const GgufMetadata& metadata,
                                const std::vector<std::string_view>& tokens) {
  SKEIN_ASSIGN_OR_RETURN(const auto scores, GgufTokenScores(metadata, tokens.size()));
  Json json = Json::array();
  for (const GgufMerge& merge : MergesOfScores(tokens, scores)) {
    json.push_back(Json::array({tokens[merge.left], tokens[merge.right]}));
  }
  return json;
}

// The token that a key such as tokenizer.ggml.bos_token_id names; nullopt if the key is absent.
Result<std::optional<std::string_view>> TokenOf(const GgufMetadata& metadata, const char* key,
                                                const std::vector<std::string_view>& tokens) {
  SKEIN_ASSIGN_OR_RETURN(const auto id, GgufTokenId(metadata, key, tokens.size()));
  if (!id) return std::optional<std::string_view>();
  return std::optional(tokens[static_cast<size_t>(*id)]);
}

Result<std::string> ConfigJson(const GgufMetadata& metadata,
                               const std::vector<std::string_view>& tokens) {
  Json config;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  config["add_prefix_space"] = false;
  config["clean_up_tokenization_spaces"] = false;
  const std::pair<const char*, const char*> kTokens[] = {
      {"tokenizer.ggml.bos_token_id", "bos_token"},
      {"tokenizer.ggml.eos_token_id", "eos_token"},
      {"tokenizer.ggml.unknown_token_id", "unk_token"},
      {"tokenizer.ggml.padding_token_id", "pad_token"},
      {kGgufBeginKey, "cls_token"},
      {kGgufSeparatorKey, "sep_token"},
      {kGgufMaskKey, "mask_token"}};
  for (const auto& [key, member] : kTokens) {
    SKEIN_ASSIGN_OR_RETURN(const auto token, TokenOf(metadata, key, tokens));
    if (token) config[member] = *token;
  }
  SKEIN_ASSIGN_OR_RETURN(const auto chat_template, metadata.String(kTemplateKey));
  if (chat_template) {
    if (!IsValidUtf8(*chat_template)) return metadata.Error(kTemplateKey, "is invalid UTF-8");
    config["chat_template"] = *chat_template;
  }
  return config.dump(2) + "\n";
}

// The post-processor that puts tokens around a text; null if it puts none.
Result<Json> PostProcessor(const GgufMetadata& metadata,
                           const std::vector<std::string_view>& tokens, bool adds_bos) {
  Json single = Json::array(), special = Json::object();
  const auto add = [&](const char* flag, const char* key, bool usual) -> Status {
    SKEIN_ASSIGN_OR_RETURN(const auto adds, metadata.Bool(flag));
    if (!adds.value_or(usual)) return Status::Ok();
    SKEIN_ASSIGN_OR_RETURN(const auto token, TokenOf(metadata, key, tokens));
    if (!token) return metadata.Error(key, std::string("is missing, but ") + flag + " is true");
    SKEIN_ASSIGN_OR_RETURN(const auto id, metadata.Int(key));
    single.push_back({{"SpecialToken", {{"id", *token}, {"type_id", 0}}}});
    special[std::string(*token)] = {
        {"id", *token}, {"ids", Json::array({*id})}, {"tokens", Json::array({*token})}};
    return Status::Ok();
  };
  SKEIN_RETURN_IF_ERROR(
      add("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", adds_bos));
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  SKEIN_RETURN_IF_ERROR(add("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false));
  if (special.empty()) return Json(nullptr);
  Json pair = single;
  for (Json item : single) {
    Json& part = item.begin().value();
    part["type_id"] = 1;
    if (item.contains("Sequence")) part["id"] = "B";
    pair.push_back(std::move(item));
  }
  return Json{{"type", "TemplateProcessing"},
              {"single", std::move(single)},
              {"pair", std::move(pair)},
              {"special_tokens", std::move(special)}};
}

// Lets a BPE model write characters that it lacks as bytes, which have tokens of their own.
Status LetBytesBeTokens(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                        Json* model) {
  (*model)["byte_fallback"] = (*model)["fuse_unk"] = true;
  SKEIN_ASSIGN_OR_RETURN(const auto unknown,
                         TokenOf(metadata, "tokenizer.ggml.unknown_token_id", tokens));
  if (unknown) (*model)["unk_token"] = *unknown;
  return Status::Ok();
}

// Reads the merges of characters of mmBERT (tokenizer.ggml.model "gpt2" with the cuts "mmbert"). A
// space begins a word, and the text between two added tokens begins with a space, too.
Status ReadMmbert(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                  Json* json) {
  const Json spaces = {{"type", "Metaspace"},
                       {"replacement", kWordMark},
                       {"prepend_scheme", "always"},
                       {"split", true}};
  (*json)["pre_tokenizer"] = spaces;
  SKEIN_ASSIGN_OR_RETURN((*json)["post_processor"], GgufEncoderFrame(metadata, tokens, 1, 0));
  SKEIN_RETURN_IF_ERROR(LetMaskTakeSpaces(metadata, json));
  (*json)["decoder"] = {
      {"type", "Sequence"},
      {"decoders", Json::array({{{"type", "ByteFallback"}}, spaces, {{"type", "Fuse"}}})}};
  SKEIN_ASSIGN_OR_RETURN(const auto merges, RequireGgufStrings(metadata, kMergesKey, false));
  Json& model = (*json)["model"] = BpeModel(tokens);
  for (const std::string_view merge : merges) model["merges"].push_back(merge);
  return LetBytesBeTokens(metadata, tokens, &model);
}

// Reads byte-level BPE (tokenizer.ggml.model "gpt2").
Status ReadByteLevel(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                     Json* json) {
  SKEIN_ASSIGN_OR_RETURN(const auto name, metadata.String(kPreKey));
  if (name == kMmbert) return ReadMmbert(metadata, tokens, json);
  SKEIN_ASSIGN_OR_RETURN(const GgufPreTokenizer* const pre, FindPreTokenizer(metadata));
  // Merges of characters have the same name in early files of multilingual ModernBERTs.
  constexpr std::string_view kSpaceByte = "\u0120";
  const auto has_space = [](std::string_view token) { return token.starts_with(kSpaceByte); };
  if (pre->num_separators > 0 && std::ranges::none_of(tokens, has_space)) {
    return metadata.Unsupported(kGgufTokensKey,
                                "has no token that begins with the byte of a space; merges of "
                                "characters are read with the cuts 'mmbert' alone");
  }
  if (pre->composes) (*json)["normalizer"] = {{"type", "NFC"}};
  (*json)["pre_tokenizer"] = pre->cuts();
  if (pre->num_separators > 0) {
    SKEIN_ASSIGN_OR_RETURN((*json)["post_processor"],
                           GgufEncoderFrame(metadata, tokens, pre->num_separators, 0));
    SKEIN_RETURN_IF_ERROR(LetMaskTakeSpaces(metadata, json));
  } else {
    SKEIN_ASSIGN_OR_RETURN((*json)["post_processor"],
                           PostProcessor(metadata, tokens, pre->adds_bos));
  }
  (*json)["decoder"] = {{"type", "ByteLevel"},
                        {"add_prefix_space", true},
                        {"trim_offsets", true},
                        {"use_regex", true}};
  SKEIN_ASSIGN_OR_RETURN(const auto merges, RequireGgufStrings(metadata, kMergesKey, false));
  Json& model = (*json)["model"] = BpeModel(tokens);
  model["ignore_merges"] = pre->ignores_merges;
  for (const std::string_view merge : merges) model["merges"].push_back(merge);
  return Status::Ok();
}

// Reads SentencePiece's BPE (tokenizer.ggml.model "llama"): a space is U+2581, and bytes have
// tokens.
Status ReadSentencePiece(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                         Json* json) {
  SKEIN_ASSIGN_OR_RETURN(const auto prefix, metadata.Bool("tokenizer.ggml.add_space_prefix"));
  const bool prepends = prefix.value_or(true);
  Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kWordMark}};
  Json steps = Json::array();
  if (prepends) steps.push_back({{"type", "Prepend"}, {"prepend", kWordMark}});
  steps.push_back(std::move(replace));
  (*json)["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  SKEIN_ASSIGN_OR_RETURN((*json)["post_processor"], PostProcessor(metadata, tokens, true));
  Json decoders =
      Json::array({{{"type", "Replace"}, {"pattern", {{"String", kWordMark}}}, {"content", " "}},
                   {{"type", "ByteFallback"}},
                   {{"type", "Fuse"}}});
  if (prepends) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  (*json)["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  Json& model = (*json)["model"] = BpeModel(tokens);
  SKEIN_RETURN_IF_ERROR(LetBytesBeTokens(metadata, tokens, &model));
  SKEIN_ASSIGN_OR_RETURN(model["merges"], ReadMergesOfScores(metadata, tokens));
  return Status::Ok();
}

}  // namespace

std::span<const GgufPreTokenizer> GgufPreTokenizers() { return kPreTokenizers; }

std::vector<GgufMerge> MergesOfScores(std::span<const std::string_view> tokens,
                                      std::span<const double> scores) {
  SKEIN_CHECK(scores.size() == tokens.size());
  std::unordered_map<std::string_view, size_t> id_of;
  for (size_t id = 0; id < tokens.size(); ++id) id_of.emplace(tokens[id], id);
  std::vector<GgufMerge> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const auto first = merges.size();
    for (size_t cut = 1; cut < tokens[id].size(); ++cut) {
      const auto left = id_of.find(tokens[id].substr(0, cut));
      const auto right = id_of.find(tokens[id].substr(cut));
      if (left != id_of.end() && right != id_of.end()) {
        merges.push_back({id, left->second, right->second});
      }
    }
    std::sort(merges.begin() + static_cast<std::ptrdiff_t>(first), merges.end(),
              [](const GgufMerge& a, const GgufMerge& b) {
                return std::pair(a.left, a.right) < std::pair(b.left, b.right);
              });
  }
  std::ranges::stable_sort(merges, [&scores](const GgufMerge& a, const GgufMerge& b) {
    return scores[a.whole] > scores[b.whole];
  });
  return merges;
}

Result<GgufTokenizerFiles> ReadGgufTokenizer(const GgufMetadata& metadata) {
  using Read = Status (*)(const GgufMetadata&, const std::vector<std::string_view>&, Json*);
  constexpr std::pair<std::string_view, Read> kKinds[] = {{"gpt2", ReadByteLevel},
                                                          {"llama", ReadSentencePiece},
                                                          {"bert", ReadGgufWordPiece},
                                                          {"t5", ReadGgufUnigram}};
  SKEIN_ASSIGN_OR_RETURN(const auto kind, metadata.String(kModelKey));
  if (!kind) return metadata.Error(kModelKey, "is missing");
  const auto* const found =
      std::ranges::find(kKinds, *kind, &std::pair<std::string_view, Read>::first);
  if (found == std::end(kKinds)) {
    return metadata.Unsupported(
        kModelKey, "is '" + std::string(*kind) + "'; supported are gpt2, llama, bert and t5");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto tokens, RequireGgufStrings(metadata, kGgufTokensKey, true));
  SKEIN_ASSIGN_OR_RETURN(const auto types, GgufTokenTypes(metadata, tokens.size()));
  GgufTokenizerFiles files;
  files.num_tokens = std::ssize(tokens);
  Json json;
  json["version"] = "1.0";
  for (const char* absent : {"truncation", "padding"}) json[absent] = nullptr;
  json["added_tokens"] = GgufAddedTokens(types, tokens);
  for (const char* absent : {"normalizer", "pre_tokenizer"}) json[absent] = nullptr;
  SKEIN_RETURN_IF_ERROR(found->second(metadata, tokens, &json));
  files.tokenizer_json = json.dump(1) + "\n";
  SKEIN_ASSIGN_OR_RETURN(files.tokenizer_config_json, ConfigJson(metadata, tokens));
  return files;
}

}  // namespace skein
