#include "model/config/sysone_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/kv_layout.h"
#include "model/config/base_model.h"
#include "model/config/config_fields.h"

namespace skein {
namespace {

constexpr std::string_view kBaseTypes[] = {"modernbert", "eurobert", "qwen3",
                                           "llama",      "mistral",  "gemma3_text"};
constexpr std::string_view kQuestionTypes[] = {"choice", "score", "noul"};
constexpr std::string_view kBuckets[] = {"2", "3-5", "6-10", "11+"};
constexpr int32_t kHeadDimWanted = 64;

std::string ConfigPath(const std::string& model_dir) { return model_dir + "/config.json"; }

// Returns "'a', 'b' and 'c'".
template <typename List>
std::string QuotedList(const List& names) {
  std::string text;
  for (size_t i = 0; i < std::size(names); ++i) {
    if (i > 0) text += i + 1 == std::size(names) ? " and " : ", ";
    text += "'" + std::string(names[i]) + "'";
  }
  return text;
}

Result<JsonObject> RequireObject(const JsonObject& json, const char* key) {
  SKEIN_ASSIGN_OR_RETURN(auto object, json.Object(key));
  if (!object) return json.Error(key, "is missing");
  return *std::move(object);
}

Result<std::string> RequireString(const JsonObject& json, std::string_view key) {
  SKEIN_ASSIGN_OR_RETURN(auto text, json.String(key));
  if (!text) return json.Error(key, "is missing");
  return *std::move(text);
}

// Reads which layers the head has, and how options are laid out.
Status ReadParams(const JsonObject& params, SysoneConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto head, params.String("head"));
  if (head.value_or("compact") != "compact") {
    return Unsupported(params, "head", "is '" + *head + "'; supported is 'compact'");
  }
  SKEIN_ASSIGN_OR_RETURN(const auto layout, params.String("layout"));
  if (layout && *layout != "parallel" && *layout != "sequential") {
    return Unsupported(params, "layout",
                       "is '" + *layout + "'; supported are 'parallel' and 'sequential'");
  }
  config->parallel = layout.value_or("parallel") == "parallel";
  SKEIN_ASSIGN_OR_RETURN(const auto layers, params.Int("head_layers"));
  if (!layers || *layers < 0 || *layers > kMaxLayers) {
    return params.Error("head_layers",
                        "must be an integer in [0, " + std::to_string(kMaxLayers) + "]");
  }
  config->head_layers = static_cast<int32_t>(*layers);
  return Status::Ok();
}

Status ReadFitted(const JsonObject& fitted, SysoneConfig* config) {
  const struct {
    const char* key;
    int64_t max;
    int32_t* out;
  } kSizes[] = {{"max_state_tokens", kMaxPosition, &config->max_state_tokens},
                {"max_option_tokens", kMaxPosition, &config->max_option_tokens},
                {"max_len", kMaxPosition, &config->max_len},
                {"head_dim", kMaxWidth, &config->head_width},
                {"num_layers", kMaxLayers, &config->num_layers},
                {"hidden_size", kMaxWidth, &config->hidden_size}};
  for (const auto& size : kSizes) {
    SKEIN_RETURN_IF_ERROR(RequireSize(fitted, size.key, size.max, size.out));
  }
  return Status::Ok();
}

Status ReadTypeNames(const JsonObject& json, SysoneConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto names, json.Strings("type_names"));
  if (!names) return json.Error("type_names", "is missing");
  for (size_t i = 0; i < std::size(kQuestionTypes); ++i) {
    const auto found = std::ranges::find(*names, kQuestionTypes[i]);
    if (found == names->end()) {
      return json.Error("type_names", "lacks '" + std::string(kQuestionTypes[i]) + "'");
    }
    config->type_rows[i] = static_cast<int32_t>(found - names->begin());
  }
  config->num_type_rows = static_cast<int32_t>(names->size());
  return Status::Ok();
}

Status CheckTemperature(const JsonObject& json, std::string_view key, double value) {
  if (std::isfinite(value) && value > 0) return Status::Ok();
  return json.Error(key, "must be a number above 0");
}

Status ReadSysoneTemperatures(const JsonObject& json, SysoneConfig* config) {
  SKEIN_ASSIGN_OR_RETURN(const auto by_type, json.Object("temperatures"));
  SKEIN_ASSIGN_OR_RETURN(const auto by_options, json.Object("temperatures_by_options"));
  for (size_t i = 0; i < std::size(kQuestionTypes); ++i) {
    const std::string_view type = kQuestionTypes[i];
    if (by_type) {
      SKEIN_ASSIGN_OR_RETURN(const auto value, by_type->Double(type));
      config->temperature[i] = value.value_or(1);
      SKEIN_RETURN_IF_ERROR(CheckTemperature(*by_type, type, config->temperature[i]));
    }
    if (!by_options) continue;
    SKEIN_ASSIGN_OR_RETURN(const auto buckets, by_options->Object(type));
    if (!buckets) continue;
    for (const std::string_view bucket : kBuckets) {
      SKEIN_ASSIGN_OR_RETURN(const auto value, buckets->Double(bucket));
      if (!value) continue;
      SKEIN_RETURN_IF_ERROR(CheckTemperature(*buckets, bucket, *value));
      config->temperature_by_options[std::string(type) + ":" + std::string(bucket)] = *value;
    }
  }
  return Status::Ok();
}

// Checks that all words in braces in `text` are among `known`, and that there is no other brace.
Status CheckTemplate(const JsonObject& json, const char* key, const std::string& text,
                     const std::vector<std::string_view>& known) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '}') return Unsupported(json, key, "has a '}' without a '{'");
    if (text[at] != '{') continue;
    const size_t end = text.find('}', at);
    const std::string word = text.substr(at + 1, end - at - 1);
    if (end == std::string::npos || std::ranges::find(known, word) == known.end()) {
      return Unsupported(json, key,
                         "has '{" + word + "}'; supported in braces are " + QuotedList(known));
    }
    at = end;
  }
  return Status::Ok();
}

Status ReadPrompt(const JsonObject& json, SysonePrompt* prompt) {
  SKEIN_ASSIGN_OR_RETURN(const JsonObject lines, RequireObject(json, "task_lines"));
  for (size_t i = 0; i < std::size(kQuestionTypes); ++i) {
    SKEIN_ASSIGN_OR_RETURN(prompt->task_lines[i], RequireString(lines, kQuestionTypes[i]));
  }
  SKEIN_ASSIGN_OR_RETURN(prompt->question, RequireString(json, "question"));
  SKEIN_ASSIGN_OR_RETURN(prompt->choice_option, RequireString(json, "choice_option"));
  SKEIN_ASSIGN_OR_RETURN(prompt->score_option, RequireString(json, "score_option"));
  SKEIN_RETURN_IF_ERROR(CheckTemplate(json, "question", prompt->question, {"instructions"}));
  SKEIN_RETURN_IF_ERROR(
      CheckTemplate(json, "choice_option", prompt->choice_option, {"label", "description"}));
  SKEIN_RETURN_IF_ERROR(
      CheckTemplate(json, "score_option", prompt->score_option, {"index", "level"}));
  SKEIN_ASSIGN_OR_RETURN(const auto labels, json.Strings("noul_labels"));
  if (!labels || labels->size() != prompt->noul_labels.size()) {
    return json.Error("noul_labels", "must be a list of two texts: no and yes");
  }
  std::ranges::copy(*labels, prompt->noul_labels.begin());
  return Status::Ok();
}

Result<std::string> FindBase(const std::string& model_dir, const JsonObject& json) {
  SKEIN_ASSIGN_OR_RETURN(const JsonObject base, RequireObject(json, "base_model"));
  SKEIN_ASSIGN_OR_RETURN(const std::string name, RequireString(base, "name"));
  SKEIN_ASSIGN_OR_RETURN(const auto revision, base.String("revision"));
  return FindBaseModel(model_dir, name, revision.value_or(""), json.where());
}

// The number of heads of width 64, or of the next larger width that divides `width`.
int32_t NumHeads(int32_t width) {
  int32_t heads = std::max(1, width / kHeadDimWanted);
  while (width % heads != 0) --heads;
  return heads;
}

}  // namespace

bool IsSysoneDir(const std::string& model_dir) {
  Result<JsonFile> file = JsonFile::Load(ConfigPath(model_dir));
  if (!file.ok()) return false;
  Result<std::optional<std::string>> format = file->root().String("format");
  return format.ok() && *format == "sysone";
}

Result<SysoneConfig> LoadSysoneConfig(const std::string& model_dir) {
  SKEIN_ASSIGN_OR_RETURN(const JsonFile file, JsonFile::Load(ConfigPath(model_dir)));
  const JsonObject& json = file.root();
  SysoneConfig config;
  SKEIN_ASSIGN_OR_RETURN(config.architecture, RequireString(json, "architecture"));
  if (std::ranges::find(kBaseTypes, config.architecture) == std::end(kBaseTypes)) {
    return Unsupported(json, "architecture",
                       "is '" + config.architecture + "'; supported are " + QuotedList(kBaseTypes));
  }
  SKEIN_ASSIGN_OR_RETURN(const JsonObject params, RequireObject(json, "params"));
  SKEIN_RETURN_IF_ERROR(ReadParams(params, &config));
  SKEIN_ASSIGN_OR_RETURN(const JsonObject fitted, RequireObject(json, "fitted"));
  SKEIN_RETURN_IF_ERROR(ReadFitted(fitted, &config));
  SKEIN_RETURN_IF_ERROR(ReadTypeNames(json, &config));
  SKEIN_RETURN_IF_ERROR(ReadSysoneTemperatures(json, &config));
  SKEIN_ASSIGN_OR_RETURN(const JsonObject prompt, RequireObject(json, "prompt_format"));
  SKEIN_RETURN_IF_ERROR(ReadPrompt(prompt, &config.prompt));
  SKEIN_ASSIGN_OR_RETURN(config.base_dir, FindBase(model_dir, json));
  return config;
}

Status AddSysoneHead(const SysoneConfig& sysone, const JsonObject& json, ModelConfig* config) {
  if (config->hidden_size != sysone.hidden_size) {
    return json.Error("hidden_size", "is " + std::to_string(config->hidden_size) +
                                         "; the decision head was trained for " +
                                         std::to_string(sysone.hidden_size));
  }
  if (sysone.num_layers > config->num_layers) {
    return json.Error("num_hidden_layers", "is " + std::to_string(config->num_layers) +
                                               "; the decision model keeps " +
                                               std::to_string(sysone.num_layers));
  }
  const int32_t heads = NumHeads(sysone.head_width);
  if (sysone.head_width / heads > kMaxHeadDim) {
    return Status(StatusCode::kUnsupported,
                  "'head_dim' of the decision head is " + std::to_string(sysone.head_width) +
                      ", which has " + std::to_string(heads) + " attention heads; they may be at " +
                      "most " + std::to_string(kMaxHeadDim) + " wide",
                  "head_dim");
  }
  config->head = Head::kDecision;
  config->decision.compact_width = sysone.head_width;
  config->decision.compact_layers = sysone.head_layers;
  config->decision.compact_heads = heads;
  config->decision.num_type_rows = sysone.num_type_rows;
  config->decision.type_rows = sysone.type_rows;
  config->num_layers = sysone.num_layers;
  if (config->has_local_layers()) {
    config->local.layers.resize(static_cast<size_t>(sysone.num_layers));
    // In the trainer's masks, the keys of the window do not include the token's own key.
    if (!config->bidirectional) ++config->local.before;
  }
  if (sysone.architecture == "eurobert") config->bidirectional = true;
  return Status::Ok();
}

}  // namespace skein
