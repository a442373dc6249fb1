#include "apps/gguf/gguf_decision.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "apps/gguf/gguf_encoder.h"
#include "apps/gguf/gguf_encoder_tokenizer.h"
#include "apps/gguf/gguf_keys.h"
#include "apps/gguf/gguf_vocabulary.h"
#include "model/config/config_fields.h"
#include "model/config/laya_config.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr char kDecisionTemplateKey[] = "tokenizer.chat_template.systemone";
// The prompt that Kev was trained to read, as llama.cpp's converter writes it. Its own server
// encodes the same (server/decisions/heads/kev_sequence.h).
constexpr std::string_view kKevTemplate =
    "<|fim_prefix|>{{ state }}<|fim_middle|>{{ instructions }}{% for o in options %}<|box_start|>"
    "{% if type == 'score' %}{% if o.description %}{{ o.description }}{% endif %}{% else %}"
    "{% if type != 'noul' %}{{ o.key }}{% elif o.key == 'true' %}yes{% else %}no{% endif %}"
    "{% if o.description %}: {{ o.description }}{% endif %}{% endif %}<|box_end|>{% endfor %}"
    "<|fim_suffix|>";

// The types of questions in the order of temperatures, and the numbers of options that have their
// own: in files, and as decision models of other origin name them.
constexpr const char* kQuestionTypes[] = {"choice", "score", "noul"};
constexpr std::pair<const char*, const char*> kOptionBuckets[] = {
    {"2", "2"}, {"3_5", "3-5"}, {"6_10", "6-10"}, {"11", "11+"}};

Result<std::optional<double>> ReadTemperature(const GgufMetadata& metadata,
                                              const std::string& key) {
  SKEIN_ASSIGN_OR_RETURN(const auto value, metadata.Double(key));
  if (value && !(*value > 0 && std::isfinite(static_cast<float>(*value)))) {
    return metadata.Error(key, "must be a number above 0, and finite");
  }
  return value ? std::optional(ShortestDecimal(*value)) : value;
}

Result<Json> ReadTemperatures(const GgufMetadata& metadata, const std::string& prefix) {
  Json json;
  json["temperature"] = Json::array();
  json["temperature_by_options"] = Json::object();
  for (const char* const type : kQuestionTypes) {
    const std::string key = prefix + "temperature." + type;
    SKEIN_ASSIGN_OR_RETURN(const auto usual, ReadTemperature(metadata, key));
    json["temperature"].push_back(usual.value_or(1));
    for (const auto& [bucket, name] : kOptionBuckets) {
      SKEIN_ASSIGN_OR_RETURN(const auto own, ReadTemperature(metadata, key + "." + bucket));
      if (own) json["temperature_by_options"][std::string(type) + ":" + name] = *own;
    }
  }
  return json;
}

// Refuses a file whose prompts differ from those of the family's own server, which Skein encodes.
Status CheckTemplate(const GgufMetadata& metadata, const char* family, std::string_view expected) {
  SKEIN_ASSIGN_OR_RETURN(const auto text, metadata.String(kDecisionTemplateKey));
  if (!text) return metadata.Error(kDecisionTemplateKey, "is missing");
  if (*text == expected) return Status::Ok();
  return metadata.Unsupported(kDecisionTemplateKey,
                              std::string("is not ") + family +
                                  "'s prompt; serve the directory from which the file was made "
                                  "(docs/decision-models.md)");
}

Result<GgufDecision> ReadKev(const GgufModel& file, const std::string& prefix) {
  SKEIN_RETURN_IF_ERROR(CheckTemplate(file.metadata(), "Kev", kKevTemplate));
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor head, file.Find("cls.output.weight"));
  GgufDecision decision;
  SKEIN_ASSIGN_OR_RETURN(decision.config, ReadTemperatures(file.metadata(), prefix));
  decision.config["head_dim"] = head.num_rows() / 2;
  return decision;
}

// The prompt that Laya was trained to read (server/decisions/heads/laya_sequence.h), as llama.cpp's
// converter writes it. A value that is no text is written as JSON.
std::string LayaTemplate(const Json& tokens) {
  const auto text = [](const std::string& name) {
    return "{{ " + name + " if " + name + " is string else " + name + " | tojson }}";
  };
  const std::string description = text("o.description");
  const std::string option =
      "{% if type == 'choice' %}{{ o.key }}{% if o.description %}: " + description +
      "{% endif %}{% elif type == 'score' %}level {{ o.key }}: " + description +
      "{% else %}{{ o.key }}: {% if o.description %}" + description +
      "{% elif o.key == 'true' %}yes, the statement holds{% else %}no, the statement does not hold"
      "{% endif %}{% endif %}";
  const auto sep = tokens["sep_token"].get<std::string>();
  return tokens["cls_token"].get<std::string>() + "{{ type }} question: " + text("instructions") +
         sep + "{% for o in options %}" + tokens["mask_token"].get<std::string>() + " " + option +
         "{% endfor %}" + sep + text("state") + sep;
}

// The tokens that begin a prompt, end its parts and mark its options.
Result<Json> LayaTokens(const GgufMetadata& metadata) {
  SKEIN_ASSIGN_OR_RETURN(const auto tokens, RequireGgufStrings(metadata, kGgufTokensKey, true));
  Json json;
  const auto read = [&](const char* member, const char* key, const char* other) -> Status {
    SKEIN_ASSIGN_OR_RETURN(const int64_t id, RequireGgufToken(metadata, key, other, tokens.size()));
    json[member] = tokens[static_cast<size_t>(id)];
    return Status::Ok();
  };
  SKEIN_RETURN_IF_ERROR(read("cls_token", kGgufBeginKey, "tokenizer.ggml.bos_token_id"));
  SKEIN_RETURN_IF_ERROR(read("sep_token", kGgufSeparatorKey, "tokenizer.ggml.eos_token_id"));
  SKEIN_RETURN_IF_ERROR(read("mask_token", kGgufMaskKey, nullptr));
  return json;
}

// A file has neither the scorer of the actions nor max_len: as in llama.cpp, a question with its
// state may fill the encoder's context.
Result<GgufDecision> ReadLaya(const GgufModel& file, std::string_view architecture,
                              const std::string& prefix) {
  const GgufMetadata& metadata = file.metadata();
  if (architecture != kGgufModernBert) {
    return metadata.Unsupported(prefix + "type", "is 'laya', which is supported on " +
                                                     std::string(kGgufModernBert) +
                                                     " alone (docs/decision-models.md)");
  }
  const GgufKeys keys(metadata, kGgufModernBert);
  GgufDecision decision = {.family = GgufDecision::Family::kLaya, .config = {}, .tokens = {}};
  SKEIN_ASSIGN_OR_RETURN(decision.tokens, LayaTokens(metadata));
  SKEIN_RETURN_IF_ERROR(CheckTemplate(metadata, "Laya", LayaTemplate(decision.tokens)));
  Json& config = decision.config;
  SKEIN_ASSIGN_OR_RETURN(config, ReadTemperatures(metadata, prefix));
  config["encoder"] = kGgufModernBert;
  config[kNoActionHead] = true;
  Json sizes;
  SKEIN_RETURN_IF_ERROR(keys.RequireCount("block_count", kMaxLayers, "layers", &sizes));
  SKEIN_RETURN_IF_ERROR(keys.RequireCount(
      "decision.block_count", sizes["layers"].get<int64_t>() - 1, "head_layers", &config));
  SKEIN_RETURN_IF_ERROR(keys.RequireCount("context_length", kMaxPosition, "max_len", &config));
  SKEIN_RETURN_IF_ERROR(
      keys.RequireCount("decision.max_head_tokens", kMaxPosition, "head_max_len", &config));
  SKEIN_RETURN_IF_ERROR(keys.RequireCount("embedding_length", kMaxWidth, "width", &sizes));
  SKEIN_RETURN_IF_ERROR(keys.RequireCount("attention.head_count", kMaxWidth, "heads", &sizes));
  const std::string problem =
      LayaHeadsProblem(sizes["width"].get<int64_t>(), sizes["heads"].get<int64_t>());
  if (!problem.empty()) return keys.Unsupported("attention.head_count", problem);
  return decision;
}

}  // namespace

Result<std::optional<GgufDecision>> ReadGgufDecision(const GgufModel& file) {
  const GgufMetadata& metadata = file.metadata();
  SKEIN_ASSIGN_OR_RETURN(const auto architecture, metadata.String("general.architecture"));
  const std::string prefix = std::string(architecture.value_or("")) + ".decision.";
  SKEIN_ASSIGN_OR_RETURN(const auto type, metadata.String(prefix + "type"));
  if (!type) return std::optional<GgufDecision>();
  if (*type == "laya") {
    SKEIN_ASSIGN_OR_RETURN(GgufDecision decision, ReadLaya(file, *architecture, prefix));
    return std::optional(std::move(decision));
  }
  if (*type != "kev") {
    return metadata.Unsupported(prefix + "type",
                                "is '" + std::string(*type) +
                                    "', a decision model; of files 'kev' and 'laya' are "
                                    "supported, and decisions of any language model "
                                    "(docs/decision-models.md)");
  }
  SKEIN_ASSIGN_OR_RETURN(GgufDecision decision, ReadKev(file, prefix));
  return std::optional(std::move(decision));
}

}  // namespace skein
