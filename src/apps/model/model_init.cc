#include "apps/model/model_init.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/model/output_dir.h"
#include "apps/model/write_progress.h"
#include "base/json_numbers.h"
#include "base/threads/thread_team.h"
#include "io/byte_tokenizer.h"
#include "io/json_file.h"
#include "io/safetensors_writer.h"
#include "model/config/shapes.h"
#include "model/weights/random_model.h"

namespace skein {
namespace {

// A vocabulary is one large object. An ordered object would search all earlier members for each new
// one.
using SortedJson = nlohmann::json;

constexpr size_t kMaxTokenizerBytes = size_t{256} << 20;

// The files of a tokenizer, and its values for a config.
struct TokenizerFiles {
  std::vector<std::pair<std::string, std::string>> files;  // name, contents
  int32_t vocab_size = 0;                                  // largest id + 1
  std::optional<int32_t> bos, eos;
};

TokenizerFiles ByteTokenizer() {
  return {{{"tokenizer.json", ByteTokenizerJson()},
           {"tokenizer_config.json", ByteTokenizerConfigJson()}},
          kByteTokenizerVocabSize,
          kByteTokenizerEndOfText,
          kByteTokenizerImEnd};
}

// Maps the text of each token in a tokenizer.json to its id. The vocabulary must be an object.
Result<std::map<std::string, int32_t>> ReadVocabulary(const SortedJson& tokenizer,
                                                      const std::string& path) {
  std::map<std::string, int32_t> ids;
  const auto add = [&](const std::string& text, const SortedJson& id) {
    if (id.is_number_integer() && id >= 0 && id < (1 << 22)) ids[text] = id.get<int32_t>();
  };
  const SortedJson::json_pointer vocab_path("/model/vocab"), added_path("/added_tokens");
  if (tokenizer.contains(vocab_path) && tokenizer.at(vocab_path).is_object()) {
    for (const auto& [text, id] : tokenizer.at(vocab_path).items()) add(text, id);
  }
  if (tokenizer.contains(added_path) && tokenizer.at(added_path).is_array()) {
    for (const SortedJson& token : tokenizer.at(added_path)) {
      if (token.is_object() && token.contains("id") && token.contains("content") &&
          token["content"].is_string()) {
        add(token["content"].get<std::string>(), token["id"]);
      }
    }
  }
  if (ids.empty())
    return Status(StatusCode::kInvalidArgument, path + " has no vocabulary", "tokenizer");
  return ids;
}

// The id of a special token that tokenizer_config.json names, as a text or as {"content": text}.
std::optional<int32_t> SpecialId(const SortedJson& config, const char* name,
                                 const std::map<std::string, int32_t>& ids) {
  if (!config.is_object() || !config.contains(name)) return std::nullopt;
  const SortedJson& value = config[name];
  const SortedJson& text =
      value.is_object() && value.contains("content") ? value["content"] : value;
  if (!text.is_string()) return std::nullopt;
  const auto it = ids.find(text.get<std::string>());
  return it == ids.end() ? std::nullopt : std::optional<int32_t>(it->second);
}

Result<TokenizerFiles> ReadTokenizer(const std::string& dir) {
  TokenizerFiles tokenizer;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    Result<std::string> text = ReadFile(dir + "/" + name, kMaxTokenizerBytes);
    const bool optional = std::string_view(name) != "tokenizer.json";
    if (optional && text.status().code() == StatusCode::kNotFound) continue;
    SKEIN_RETURN_IF_ERROR(text.status());
    tokenizer.files.emplace_back(name, std::move(text).value());
  }
  const std::string path = dir + "/tokenizer.json";
  const SortedJson json = SortedJson::parse(WithReadableNumbers(tokenizer.files[0].second), nullptr,
                                            /*allow_exceptions=*/false);
  if (!json.is_object())
    return Status(StatusCode::kInvalidArgument, path + " is not valid JSON", "tokenizer");
  SKEIN_ASSIGN_OR_RETURN(const auto ids, ReadVocabulary(json, path));
  for (const auto& [text, id] : ids) {
    tokenizer.vocab_size = std::max(tokenizer.vocab_size, id + 1);
  }
  if (tokenizer.files.size() > 1 && tokenizer.files[1].first == "tokenizer_config.json") {
    const SortedJson config =
        SortedJson::parse(WithReadableNumbers(tokenizer.files[1].second), nullptr, false);
    tokenizer.bos = SpecialId(config, "bos_token", ids);
    tokenizer.eos = SpecialId(config, "eos_token", ids);
  }
  return tokenizer;
}

// The special tokens of the shape if the tokenizer has them, otherwise those of the tokenizer.
SpecialTokens TokensOf(const ModelShape& shape, const TokenizerFiles& tokenizer) {
  const std::vector<int32_t>& known = shape.tokens.eos;
  if (shape.vocab_size > 0 &&
      (!tokenizer.eos || std::find(known.begin(), known.end(), *tokenizer.eos) != known.end())) {
    return shape.tokens;
  }
  SpecialTokens tokens;
  tokens.eos = {tokenizer.eos.value_or(0)};
  tokens.bos = tokenizer.bos.value_or(tokens.eos[0]);
  if (tokens.bos != tokens.eos[0]) tokens.eos.push_back(tokens.bos);
  return tokens;
}

}  // namespace

Result<ModelInitSummary> InitModel(const ModelInitOptions& options) {
  const ModelShape* found = FindModelShape(options.shape);
  if (found == nullptr) {
    std::string names;
    for (const ModelShape& known : ModelShapes()) names += std::string(" ") + known.name;
    return Status(StatusCode::kInvalidArgument,
                  "no shape '" + options.shape + "'; known are" + names, "shape");
  }
  if (options.num_layers < 0 || options.num_layers > found->num_layers) {
    return Status(StatusCode::kInvalidArgument,
                  "layers is " + std::to_string(options.num_layers) + "; the shape " +
                      options.shape + " has " + std::to_string(found->num_layers),
                  "layers");
  }
  ModelShape shape = *found;
  if (options.num_layers > 0) shape.num_layers = options.num_layers;
  TokenizerFiles tokenizer = ByteTokenizer();
  if (!options.tokenizer_dir.empty()) {
    SKEIN_ASSIGN_OR_RETURN(tokenizer, ReadTokenizer(options.tokenizer_dir));
  }
  if (shape.vocab_size > 0 && tokenizer.vocab_size > shape.vocab_size) {
    return Status(StatusCode::kInvalidArgument,
                  "the tokenizer has " + std::to_string(tokenizer.vocab_size) +
                      " tokens, the shape " + options.shape + " only " +
                      std::to_string(shape.vocab_size),
                  "tokenizer");
  }
  const SpecialTokens tokens = TokensOf(shape, tokenizer);
  const std::string config_json =
      ShapeConfigJson(shape, tokenizer.vocab_size, tokens, options.dtype);
  SKEIN_ASSIGN_OR_RETURN(const ModelConfig config, ParseModelConfig(config_json));

  SKEIN_RETURN_IF_ERROR(PrepareModelDirectory(options.dir, options.force));
  ThreadTeam team(options.num_threads);
  SKEIN_RETURN_IF_ERROR(WriteRandomWeights(
      config, {options.dtype, options.seed, options.max_shard_bytes}, options.dir, &team,
      options.show_progress ? WriteProgress() : LoadProgress()));
  for (const auto& [name, text] : tokenizer.files) {
    SKEIN_RETURN_IF_ERROR(WriteFile(options.dir + "/" + name, text));
  }
  SKEIN_RETURN_IF_ERROR(
      WriteFile(options.dir + "/generation_config.json", GenerationConfigJson(tokens)));
  SKEIN_RETURN_IF_ERROR(WriteFile(options.dir + "/config.json", config_json));
  const int64_t parameters = config.NumParameters();
  return ModelInitSummary{parameters, parameters * static_cast<int64_t>(SizeOf(options.dtype))};
}

}  // namespace skein
