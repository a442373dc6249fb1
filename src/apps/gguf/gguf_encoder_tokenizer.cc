#include "apps/gguf/gguf_encoder_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "apps/gguf/gguf_vocabulary.h"
#include "server/json/base64.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr char kWordBegin[] = "\u2581", kContinues[] = "##";
constexpr char kUnknownKey[] = "tokenizer.ggml.unknown_token_id";

// Whether a token is written as in a vocabulary of BERT although it is of no other type than words:
// files of earlier converters keep "[unused0]".
bool IsBracketed(std::string_view token) { return token.starts_with('[') && token.ends_with(']'); }

// A token of the file as WordPiece has it.
std::string WordPieceOf(std::string_view token, int64_t type) {
  if (type == kGgufControl || type == kGgufUnknown) return std::string(token);
  if (token.starts_with(kWordBegin)) return std::string(token.substr(sizeof(kWordBegin) - 1));
  return IsBracketed(token) ? std::string(token) : kContinues + std::string(token);
}

bool HasCapital(std::string_view token) {
  return std::ranges::any_of(token, [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

Result<int64_t> RequireGgufToken(const GgufMetadata& metadata, const char* key, const char* other,
                                 size_t num_tokens) {
  for (const char* const name : {key, other}) {
    if (name == nullptr) return metadata.Error(key, "is missing");
    SKEIN_ASSIGN_OR_RETURN(const auto id, GgufTokenId(metadata, name, num_tokens));
    if (id) return *id;
  }
  return metadata.Error(key, std::string("is missing, and so is '") + other + "'");
}

Result<Json> GgufEncoderFrame(const GgufMetadata& metadata,
                              const std::vector<std::string_view>& tokens, int num_separators,
                              int second_segment) {
  SKEIN_ASSIGN_OR_RETURN(
      const int64_t begin,
      RequireGgufToken(metadata, kGgufBeginKey, "tokenizer.ggml.bos_token_id", tokens.size()));
  SKEIN_ASSIGN_OR_RETURN(
      const int64_t separator,
      RequireGgufToken(metadata, kGgufSeparatorKey, "tokenizer.ggml.eos_token_id", tokens.size()));
  Json special = Json::object();
  for (const int64_t id : {begin, separator}) {
    const std::string token(tokens[static_cast<size_t>(id)]);
    special[token] = {{"id", token}, {"ids", Json::array({id})}, {"tokens", Json::array({token})}};
  }
  const auto token = [&](int64_t id, int segment) {
    return Json{{"SpecialToken", {{"id", tokens[static_cast<size_t>(id)]}, {"type_id", segment}}}};
  };
  const auto text = [](const char* name, int segment) {
    return Json{{"Sequence", {{"id", name}, {"type_id", segment}}}};
  };
  Json single = Json::array({token(begin, 0), text("A", 0), token(separator, 0)});
  Json pair = single;
  for (int i = 1; i < num_separators; ++i) pair.push_back(token(separator, 0));
  pair.push_back(text("B", second_segment));
  pair.push_back(token(separator, second_segment));
  return Json{{"type", "TemplateProcessing"},
              {"single", std::move(single)},
              {"pair", std::move(pair)},
              {"special_tokens", std::move(special)}};
}

Status LetMaskTakeSpaces(const GgufMetadata& metadata, Json* json) {
  SKEIN_ASSIGN_OR_RETURN(const auto mask, metadata.Int(kGgufMaskKey));
  for (Json& token : (*json)["added_tokens"]) {
    if (mask && token["id"] == *mask) token["lstrip"] = true;
  }
  return Status::Ok();
}

Status ReadGgufWordPiece(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                         Json* json) {
  SKEIN_ASSIGN_OR_RETURN(const auto types, GgufTokenTypes(metadata, tokens.size()));
  SKEIN_ASSIGN_OR_RETURN(const auto unknown, GgufTokenId(metadata, kUnknownKey, tokens.size()));
  if (!unknown) return metadata.Error(kUnknownKey, "is missing");
  std::vector<std::string> pieces;
  bool is_cased = false;
  std::unordered_set<std::string> seen;
  for (size_t id = 0; id < tokens.size(); ++id) {
    pieces.push_back(WordPieceOf(tokens[id], types[id]));
    if (!seen.insert(pieces.back()).second) {
      return metadata.Error(kGgufTokensKey, "holds the piece '" + pieces.back() + "' twice");
    }
    const bool is_word = types[id] == kGgufNormal && !IsBracketed(pieces.back());
    is_cased = is_cased || (is_word && HasCapital(pieces.back()));
  }
  for (Json& token : (*json)["added_tokens"]) {
    token["content"] = pieces[token["id"].get<size_t>()];
  }
  Json& model = (*json)["model"];
  model = {{"type", "WordPiece"},
           {"unk_token", pieces[static_cast<size_t>(*unknown)]},
           {"continuing_subword_prefix", kContinues},
           {"max_input_chars_per_word", 100}};
  // ordered_json would compare a new member with every earlier one; its base type does not.
  auto& vocab = (model["vocab"] = Json::object()).get_ref<Json::object_t&>();
  vocab.reserve(pieces.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    vocab.Container::emplace_back(std::move(pieces[id]), id);
  }
  (*json)["normalizer"] = {{"type", "BertNormalizer"},
                           {"clean_text", true},
                           {"handle_chinese_chars", true},
                           {"strip_accents", nullptr},
                           {"lowercase", !is_cased}};
  (*json)["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  (*json)["decoder"] = {{"type", "WordPiece"}, {"prefix", kContinues}, {"cleanup", true}};
  SKEIN_ASSIGN_OR_RETURN((*json)["post_processor"], GgufEncoderFrame(metadata, tokens, 1, 1));
  return Status::Ok();
}

Status ReadGgufUnigram(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens,
                       Json* json) {
  constexpr char kCharsmapKey[] = "tokenizer.ggml.precompiled_charsmap";
  SKEIN_ASSIGN_OR_RETURN(const auto scores, GgufTokenScores(metadata, tokens.size()));
  SKEIN_ASSIGN_OR_RETURN(const auto unknown, GgufTokenId(metadata, kUnknownKey, tokens.size()));
  if (!unknown) return metadata.Error(kUnknownKey, "is missing");
  SKEIN_ASSIGN_OR_RETURN(const auto charsmap, metadata.Ints(kCharsmapKey));
  if (charsmap) {
    std::vector<std::byte> bytes;
    for (const int64_t value : *charsmap) bytes.push_back(static_cast<std::byte>(value & 0xff));
    std::string text;
    AppendBase64(bytes, &text);
    (*json)["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", std::move(text)}};
  }
  const Json spaces = {{"type", "Metaspace"},
                       {"replacement", kWordBegin},
                       {"prepend_scheme", "always"},
                       {"split", true}};
  (*json)["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", Json::array({{{"type", "WhitespaceSplit"}}, spaces})}};
  (*json)["decoder"] = spaces;
  SKEIN_ASSIGN_OR_RETURN((*json)["post_processor"], GgufEncoderFrame(metadata, tokens, 2, 0));
  Json vocab = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    vocab.push_back(Json::array({tokens[id], scores[id]}));
  }
  (*json)["model"] = {{"type", "Unigram"},
                      {"unk_id", *unknown},
                      {"vocab", std::move(vocab)},
                      {"byte_fallback", false}};
  return LetMaskTakeSpaces(metadata, json);
}

}  // namespace skein
