#include "apps/gguf/gguf_decision.h"

#include <string>
#include <string_view>
#include <utility>

#include "apps/gguf/gguf_keys.h"
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
  if (value && !(*value > 0)) return metadata.Error(key, "must be a number above 0");
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

}  // namespace

Result<std::optional<Json>> ReadGgufDecision(const GgufModel& file) {
  const GgufMetadata& metadata = file.metadata();
  SKEIN_ASSIGN_OR_RETURN(const auto architecture, metadata.String("general.architecture"));
  const std::string prefix = std::string(architecture.value_or("")) + ".decision.";
  SKEIN_ASSIGN_OR_RETURN(const auto type, metadata.String(prefix + "type"));
  if (!type) return std::optional<Json>();
  if (*type != "kev") {
    return metadata.Unsupported(
        prefix + "type", "is '" + std::string(*type) +
                             "', a decision model; of files 'kev' is supported, and " +
                             (*type == "laya" ? "of Laya the directory from which the file was made"
                                              : "decisions of any language model") +
                             " (docs/decision-models.md)");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto text, metadata.String(kDecisionTemplateKey));
  if (!text) return metadata.Error(kDecisionTemplateKey, "is missing");
  if (*text != kKevTemplate) {
    return metadata.Unsupported(
        kDecisionTemplateKey,
        "is not Kev's prompt; serve the directory from which the file was made "
        "(docs/decision-models.md)");
  }
  SKEIN_ASSIGN_OR_RETURN(const GgufTensor head, file.Find("cls.output.weight"));
  SKEIN_ASSIGN_OR_RETURN(Json json, ReadTemperatures(metadata, prefix));
  json["head_dim"] = head.num_rows() / 2;
  return std::optional(std::move(json));
}

}  // namespace skein
