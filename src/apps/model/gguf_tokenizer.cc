#include "apps/model/gguf_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/json/json.h"
#include "text/unicode/utf8.h"

namespace skein {
namespace {

constexpr char kModelKey[] = "tokenizer.ggml.model";
constexpr char kPreKey[] = "tokenizer.ggml.pre";
constexpr char kTokensKey[] = "tokenizer.ggml.tokens";
constexpr char kTypesKey[] = "tokenizer.ggml.token_type";
constexpr char kMergesKey[] = "tokenizer.ggml.merges";
constexpr char kTemplateKey[] = "tokenizer.chat_template";

// tokenizer.ggml.pre: how text is cut before the merges, as tokenizer.json says it.
struct PreTokenizer {
  const char* name;
  const char* json;
};
constexpr PreTokenizer kPreTokenizers[] = {
    {"smollm",
     R"({"type": "Sequence", "pretokenizers": [
           {"type": "Digits", "individual_digits": true},
           {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": true}]})"},
};

// tokenizer.ggml.token_type
enum TokenType : int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused };

Result<Json> PreTokenizerJson(const GgufMetadata& metadata) {
  SKEIN_ASSIGN_OR_RETURN(const auto pre, metadata.String(kPreKey));
  if (!pre) return metadata.Error(kPreKey, "is missing");
  std::string known;
  for (const PreTokenizer& entry : kPreTokenizers) {
    if (*pre == entry.name) return Json::parse(entry.json);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return metadata.Unsupported(kPreKey, "is '" + std::string(*pre) + "'; supported are " + known);
}

// Refuses strings that JSON cannot hold and, with `unique`, those that come twice.
Result<std::vector<std::string_view>> RequireStrings(const GgufMetadata& metadata, const char* key,
                                                     bool unique) {
  SKEIN_ASSIGN_OR_RETURN(auto strings, metadata.Strings(key));
  if (!strings) return metadata.Error(key, "is missing");
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < strings->size(); ++i) {
    const std::string_view text = (*strings)[i];
    if (!IsValidUtf8(text)) {
      return metadata.Error(key, "holds invalid UTF-8 at index " + std::to_string(i));
    }
    if (unique && !seen.insert(text).second) {
      return metadata.Error(key, "holds '" + std::string(text) + "' twice");
    }
  }
  return *std::move(strings);
}

Result<Json> AddedTokens(const GgufMetadata& metadata,
                         const std::vector<std::string_view>& tokens) {
  SKEIN_ASSIGN_OR_RETURN(const auto types, metadata.Ints(kTypesKey));
  if (!types) return metadata.Error(kTypesKey, "is missing");
  if (types->size() != tokens.size()) {
    return metadata.Error(kTypesKey, "has " + std::to_string(types->size()) + " elements, but " +
                                         kTokensKey + " has " + std::to_string(tokens.size()));
  }
  Json added = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    const int64_t type = (*types)[id];
    if (type < kNormal || type > kUnused) {
      return metadata.Unsupported(kTypesKey, "holds " + std::to_string(type) + " for token " +
                                                 std::to_string(id) + "; supported are 1 to 5");
    }
    if (type == kNormal || type == kUnused) continue;
    Json token;
    token["id"] = id;
    token["content"] = tokens[id];
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) token[flag] = false;
    token["special"] = type != kUserDefined;
    added.push_back(std::move(token));
  }
  return added;
}

Result<Json> BpeModel(const GgufMetadata& metadata, const std::vector<std::string_view>& tokens) {
  SKEIN_ASSIGN_OR_RETURN(const auto merges, RequireStrings(metadata, kMergesKey, false));
  Json model;
  model["type"] = "BPE";
  for (const char* absent :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    model[absent] = nullptr;
  }
  for (const char* flag : {"fuse_unk", "byte_fallback", "ignore_merges"}) model[flag] = false;
  // ordered_json compares a new member with every earlier one; its base type does not.
  auto& vocab = (model["vocab"] = Json::object()).get_ref<Json::object_t&>();
  vocab.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    vocab.Container::emplace_back(std::string(tokens[id]), id);
  }
  model["merges"] = Json::array();
  for (const std::string_view merge : merges) model["merges"].push_back(merge);
  return model;
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
      {"tokenizer.ggml.padding_token_id", "pad_token"}};
  for (const auto& [key, member] : kTokens) {
    SKEIN_ASSIGN_OR_RETURN(const auto id, metadata.Int(key));
    if (!id) continue;
    if (*id < 0 || *id >= std::ssize(tokens)) {
      return metadata.Error(key, "is " + std::to_string(*id) + "; there are " +
                                     std::to_string(tokens.size()) + " tokens");
    }
    config[member] = tokens[static_cast<size_t>(*id)];
  }
  SKEIN_ASSIGN_OR_RETURN(const auto chat_template, metadata.String(kTemplateKey));
  if (chat_template) {
    if (!IsValidUtf8(*chat_template)) return metadata.Error(kTemplateKey, "is invalid UTF-8");
    config["chat_template"] = *chat_template;
  }
  return config.dump(2) + "\n";
}

// Refuses a tokenizer that puts tokens of its own around a text.
Status CheckAddsNothing(const GgufMetadata& metadata) {
  for (const char* key : {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"}) {
    SKEIN_ASSIGN_OR_RETURN(const auto adds, metadata.Bool(key));
    if (adds.value_or(false)) return metadata.Unsupported(key, "is true; only false is supported");
  }
  return Status::Ok();
}

}  // namespace

Result<GgufTokenizerFiles> ReadGgufTokenizer(const GgufMetadata& metadata) {
  SKEIN_ASSIGN_OR_RETURN(const auto kind, metadata.String(kModelKey));
  if (!kind) return metadata.Error(kModelKey, "is missing");
  if (*kind != "gpt2") {
    return metadata.Unsupported(kModelKey, "is '" + std::string(*kind) + "'; supported is gpt2");
  }
  SKEIN_RETURN_IF_ERROR(CheckAddsNothing(metadata));
  SKEIN_ASSIGN_OR_RETURN(const auto tokens, RequireStrings(metadata, kTokensKey, true));
  GgufTokenizerFiles files;
  files.num_tokens = std::ssize(tokens);
  Json json;
  json["version"] = "1.0";
  json["truncation"] = nullptr;
  json["padding"] = nullptr;
  SKEIN_ASSIGN_OR_RETURN(json["added_tokens"], AddedTokens(metadata, tokens));
  json["normalizer"] = nullptr;
  SKEIN_ASSIGN_OR_RETURN(json["pre_tokenizer"], PreTokenizerJson(metadata));
  json["post_processor"] = nullptr;
  json["decoder"] = {{"type", "ByteLevel"},
                     {"add_prefix_space", true},
                     {"trim_offsets", true},
                     {"use_regex", true}};
  SKEIN_ASSIGN_OR_RETURN(json["model"], BpeModel(metadata, tokens));
  files.tokenizer_json = json.dump(1) + "\n";
  SKEIN_ASSIGN_OR_RETURN(files.tokenizer_config_json, ConfigJson(metadata, tokens));
  return files;
}

}  // namespace skein
