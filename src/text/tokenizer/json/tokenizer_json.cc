#include "text/tokenizer/json/tokenizer_json.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "text/tokenizer/json/json_fields.h"
#include "text/tokenizer/json/model_json.h"
#include "text/tokenizer/json/tokenizer_steps_json.h"

namespace skein {
namespace {

constexpr std::string_view kAdded = "tokenizer.json: added_tokens";
constexpr std::string_view kConfig = "tokenizer_config.json";

Status ReadVocab(JsonValue model, BpeSpec* spec) {
  simdjson::dom::object vocab;
  if (model.at_key("vocab").get(vocab) != simdjson::SUCCESS) {
    return JsonError(kModelObject, "'vocab' must be an object");
  }
  spec->vocab.reserve(vocab.size());
  for (const auto& [token, value] : vocab) {
    int64_t id = 0;
    if (value.get(id) != simdjson::SUCCESS || id < 0 || id > std::numeric_limits<TokenId>::max()) {
      return JsonError(kModelObject,
                       "'vocab': the id of '" + std::string(token) + "' is no token id");
    }
    spec->vocab.emplace_back(token, static_cast<TokenId>(id));
  }
  return Status::Ok();
}

// Reads the merges, which are pairs ["a", "b"], or "a b" in older files.
Status ReadMerges(JsonValue model, BpeSpec* spec) {
  SKEIN_ASSIGN_OR_RETURN(const simdjson::dom::array merges,
                         JsonArray(model, "merges", kModelObject));
  for (const JsonValue item : merges) {
    std::string_view text, left, right;
    simdjson::dom::array pair;
    if (item.get(text) == simdjson::SUCCESS) {
      if (text.starts_with("#version")) continue;
      const size_t space = text.find(' ');
      if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos) {
        spec->merges.emplace_back(text.substr(0, space), text.substr(space + 1));
        continue;
      }
    } else if (item.get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
               pair.at(0).get(left) == simdjson::SUCCESS &&
               pair.at(1).get(right) == simdjson::SUCCESS) {
      spec->merges.emplace_back(left, right);
      continue;
    }
    return JsonError(kModelObject, "merge " + std::to_string(spec->merges.size()) +
                                       " is neither \"a b\" nor [\"a\", \"b\"]");
  }
  return Status::Ok();
}

// The type of the model. Older files have no `type`; the type follows from their members.
Result<std::string> ReadModelType(JsonValue model) {
  if (JsonHas(model, "type")) return JsonString(model, "type", kModelObject);
  if (JsonHas(model, "merges")) return std::string("BPE");
  if (JsonHas(model, "continuing_subword_prefix")) return std::string("WordPiece");
  JsonValue vocab;
  if (model.at_key("vocab").get(vocab) == simdjson::SUCCESS) {
    if (vocab.is_array()) return std::string("Unigram");
    if (vocab.is_object() && JsonHas(model, "unk_token")) return std::string("WordLevel");
  }
  return NotSupported(kModelObject, "a model without 'type' and 'merges'");
}

Result<BpeSpec> ReadBpe(JsonValue model) {
  double dropout = 0;
  if (JsonHas(model, "dropout") &&
      (model.at_key("dropout").get(dropout) != simdjson::SUCCESS || dropout != 0)) {
    return NotSupported(kModelObject, "'dropout'");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!JsonHas(model, key)) continue;
    SKEIN_ASSIGN_OR_RETURN(const std::string affix, JsonString(model, key, kModelObject));
    if (!affix.empty()) return NotSupported(kModelObject, std::string(key) + " '" + affix + "'");
  }
  BpeSpec spec;
  if (JsonHas(model, "unk_token")) {
    SKEIN_ASSIGN_OR_RETURN(spec.unk_token, JsonString(model, "unk_token", kModelObject));
  }
  SKEIN_ASSIGN_OR_RETURN(spec.fuse_unk, JsonBool(model, "fuse_unk", false, kModelObject));
  SKEIN_ASSIGN_OR_RETURN(spec.byte_fallback, JsonBool(model, "byte_fallback", false, kModelObject));
  SKEIN_ASSIGN_OR_RETURN(spec.ignore_merges, JsonBool(model, "ignore_merges", false, kModelObject));
  SKEIN_RETURN_IF_ERROR(ReadVocab(model, &spec));
  SKEIN_RETURN_IF_ERROR(ReadMerges(model, &spec));
  return spec;
}

Status ReadTokenFlags(JsonValue item, std::string_view where, AddedToken* token) {
  SKEIN_ASSIGN_OR_RETURN(token->special, JsonBool(item, "special", false, where));
  SKEIN_ASSIGN_OR_RETURN(token->single_word, JsonBool(item, "single_word", false, where));
  SKEIN_ASSIGN_OR_RETURN(token->lstrip, JsonBool(item, "lstrip", false, where));
  SKEIN_ASSIGN_OR_RETURN(token->rstrip, JsonBool(item, "rstrip", false, where));
  SKEIN_ASSIGN_OR_RETURN(token->normalized, JsonBool(item, "normalized", !token->special, where));
  return Status::Ok();
}

Result<std::vector<AddedToken>> ReadAddedTokens(JsonValue root) {
  std::vector<AddedToken> tokens;
  if (!JsonHas(root, "added_tokens")) return tokens;
  SKEIN_ASSIGN_OR_RETURN(const simdjson::dom::array items,
                         JsonArray(root, "added_tokens", "tokenizer.json"));
  for (const JsonValue item : items) {
    AddedToken token;
    SKEIN_ASSIGN_OR_RETURN(token.content, JsonString(item, "content", kAdded));
    SKEIN_ASSIGN_OR_RETURN(const int64_t id,
                           JsonInt(item, "id", 0, std::numeric_limits<TokenId>::max(), kAdded));
    token.id = static_cast<TokenId>(id);
    SKEIN_RETURN_IF_ERROR(ReadTokenFlags(item, kAdded, &token));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

JsonValue MemberOrNull(JsonValue root, std::string_view key, JsonValue null) {
  JsonValue value;
  return root.at_key(key).get(value) == simdjson::SUCCESS ? value : null;
}

Result<Decoder> ReadWholeDecoder(JsonValue root) {
  JsonValue value;
  if (root.at_key("decoder").get(value) != simdjson::SUCCESS || value.is_null()) {
    return Decoder::Joining();
  }
  std::vector<Decoder::Step> steps;
  SKEIN_RETURN_IF_ERROR(ReadDecoder(value, &steps));
  return Decoder::Create(std::move(steps));
}

// Reads a token of the config: its text, or an object with the member `content`.
std::optional<TokenId> ReadConfigToken(JsonValue config, std::string_view key,
                                       const TokenizerParts& parts) {
  JsonValue value;
  std::string_view text;
  if (config.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
  if (value.get(text) != simdjson::SUCCESS &&
      value.at_key("content").get(text) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  const std::optional<TokenId> added = parts.added_tokens.TokenToId(text);
  return added ? added : parts.ModelTokenToId(text);
}

// Adds the tokens that only the config names, in the order of their ids, as transformers does.
Status AddConfigTokens(const std::string& path, std::vector<AddedToken>* tokens) {
  if (!std::filesystem::exists(path)) return Status::Ok();
  simdjson::dom::parser parser;
  SKEIN_ASSIGN_OR_RETURN(const JsonValue config, LoadJson(path, &parser));
  simdjson::dom::object named;
  if (config.at_key("added_tokens_decoder").get(named) != simdjson::SUCCESS) return Status::Ok();
  std::map<TokenId, AddedToken> more;
  for (const auto& [key, value] : named) {
    AddedToken token;
    SKEIN_ASSIGN_OR_RETURN(token.content, JsonString(value, "content", kConfig));
    const auto same = [&](const AddedToken& other) { return other.content == token.content; };
    if (std::ranges::any_of(*tokens, same)) continue;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token.id);
    if (error != std::errc() || end != key.data() + key.size() || token.id < 0) {
      return JsonError(kConfig,
                       "'" + std::string(key) + "' of added_tokens_decoder is no token id");
    }
    SKEIN_RETURN_IF_ERROR(ReadTokenFlags(value, kConfig, &token));
    more.emplace(token.id, std::move(token));
  }
  for (auto& [id, token] : more) tokens->push_back(std::move(token));
  return Status::Ok();
}

// Refuses a config that contradicts the tokenizer.
Status CheckConfigTokens(JsonValue config, const TokenizerParts& parts) {
  simdjson::dom::object tokens;
  if (config.at_key("added_tokens_decoder").get(tokens) != simdjson::SUCCESS) return Status::Ok();
  for (const auto& [key, value] : tokens) {
    SKEIN_ASSIGN_OR_RETURN(const std::string content, JsonString(value, "content", kConfig));
    const std::optional<TokenId> id = parts.added_tokens.TokenToId(content);
    if (!id || std::to_string(*id) != key) {
      return NotSupported(kConfig, "the added token '" + content + "' with id " + std::string(key) +
                                       ", which tokenizer.json does not add,");
    }
  }
  return Status::Ok();
}

Status ReadConfig(const std::string& path, TokenizerParts* parts) {
  if (!std::filesystem::exists(path)) return Status::Ok();
  simdjson::dom::parser parser;
  SKEIN_ASSIGN_OR_RETURN(const JsonValue config, LoadJson(path, &parser));
  SKEIN_RETURN_IF_ERROR(CheckConfigTokens(config, *parts));
  parts->bos_id = ReadConfigToken(config, "bos_token", *parts);
  parts->eos_id = ReadConfigToken(config, "eos_token", *parts);
  parts->pad_id = ReadConfigToken(config, "pad_token", *parts);
  return Status::Ok();
}

struct ReadModelResult {
  Bpe bpe;  // empty if the model is not BPE
  BpeUnknowns unknowns;
  std::unique_ptr<const Model> other;
};

Result<ReadModelResult> ReadModel(JsonValue root) {
  JsonValue model;
  if (root.at_key("model").get(model) != simdjson::SUCCESS) {
    return JsonError("tokenizer.json", "no 'model'");
  }
  SKEIN_ASSIGN_OR_RETURN(const std::string type, ReadModelType(model));
  BpeSpec spec;
  std::unique_ptr<const Model> other;
  if (type == "BPE") {
    SKEIN_ASSIGN_OR_RETURN(spec, ReadBpe(model));
  } else {
    SKEIN_ASSIGN_OR_RETURN(other, ReadOtherModel(model, type));
  }
  BpeUnknowns unknowns{std::nullopt, spec.fuse_unk, spec.byte_fallback};
  const std::optional<std::string> unk_token = spec.unk_token;
  SKEIN_ASSIGN_OR_RETURN(Bpe bpe, Bpe::Create(spec));
  if (unk_token) unknowns.unk_id = bpe.TokenToId(*unk_token);
  return ReadModelResult{std::move(bpe), unknowns, std::move(other)};
}

// Collects the special tokens that the post-processor adds before and after a single text.
void SplitSpecialIds(TokenizerParts* parts) {
  std::vector<TokenId>* ids = &parts->prefix_ids;
  for (const PostProcessor::Part& part : parts->post_processor.Layout(/*is_pair=*/false)) {
    if (part.sequence == PostProcessor::Sequence::kA) ids = &parts->suffix_ids;
    ids->insert(ids->end(), part.ids.begin(), part.ids.end());
  }
}

// Checks that every token that the post-processor adds exists.
Status CheckSpecialIds(const TokenizerParts& parts) {
  const TokenId max_id = std::max(parts.model_max_id(), parts.added_tokens.max_id());
  for (const bool is_pair : {false, true}) {
    for (const PostProcessor::Part& part : parts.post_processor.Layout(is_pair)) {
      for (const TokenId id : part.ids) {
        if (id >= 0 && id <= max_id) continue;
        return JsonError("tokenizer.json", "'post_processor' adds the token " + std::to_string(id) +
                                               ", must be one of 0 to " + std::to_string(max_id));
      }
    }
  }
  return Status::Ok();
}

}  // namespace

Result<TokenizerParts> LoadTokenizerParts(const std::string& model_dir) {
  const std::string path = model_dir + "/tokenizer.json";
  if (!std::filesystem::exists(path)) {
    return Status(StatusCode::kNotFound, "no tokenizer.json in " + model_dir);
  }
  simdjson::dom::parser parser, null_parser;
  SKEIN_ASSIGN_OR_RETURN(const JsonValue root, LoadJson(path, &parser));
  const JsonValue null = null_parser.parse(std::string_view("null")).value_unsafe();
  std::vector<Normalizer::Step> normalizer_steps;
  SKEIN_RETURN_IF_ERROR(ReadNormalizer(MemberOrNull(root, "normalizer", null), &normalizer_steps));
  std::vector<PreTokenizer::Step> pre_steps;
  SKEIN_RETURN_IF_ERROR(ReadPreTokenizer(MemberOrNull(root, "pre_tokenizer", null), &pre_steps));
  PostProcessor post_processor;
  SKEIN_RETURN_IF_ERROR(
      ReadPostProcessor(MemberOrNull(root, "post_processor", null), &post_processor));
  SKEIN_ASSIGN_OR_RETURN(Decoder decoder, ReadWholeDecoder(root));
  SKEIN_ASSIGN_OR_RETURN(ReadModelResult model, ReadModel(root));
  SKEIN_ASSIGN_OR_RETURN(std::vector<AddedToken> tokens, ReadAddedTokens(root));
  const std::string config_path = model_dir + "/tokenizer_config.json";
  SKEIN_RETURN_IF_ERROR(AddConfigTokens(config_path, &tokens));

  Normalizer normalizer(std::move(normalizer_steps));
  SKEIN_ASSIGN_OR_RETURN(
      AddedTokens added,
      AddedTokens::Create(
          std::move(tokens), model.other ? model.other->num_tokens() : model.bpe.num_tokens(),
          [&model](std::string_view token) {
            return model.other ? model.other->TokenToId(token) : model.bpe.TokenToId(token);
          },
          normalizer));
  auto classes = std::make_shared<const CharClasses>();
  TokenizerParts parts{classes,
                       std::move(normalizer),
                       {std::move(pre_steps), classes},
                       std::move(model.bpe),
                       model.unknowns,
                       std::move(model.other),
                       std::move(added),
                       std::move(decoder),
                       std::move(post_processor),
                       {},
                       {},
                       {},
                       {},
                       {}};
  SKEIN_RETURN_IF_ERROR(CheckSpecialIds(parts));
  SplitSpecialIds(&parts);
  SKEIN_RETURN_IF_ERROR(ReadConfig(config_path, &parts));
  return parts;
}

}  // namespace skein
