#include "apps/host/generation_config.h"

#include <filesystem>

#include "apps/read_json.h"
#include "server/json/field_reader.h"

namespace skein {

Result<GenerationDefaults> LoadGenerationDefaults(const std::string& model_dir,
                                                  const ModelConfig& config,
                                                  const Tokenizer& tokenizer) {
  GenerationDefaults defaults;
  defaults.eos_token_ids.assign(config.eos_token_ids.begin(), config.eos_token_ids.end());
  if (defaults.eos_token_ids.empty() && tokenizer.eos_id().has_value())
    defaults.eos_token_ids.push_back(*tokenizer.eos_id());

  const std::string path = model_dir + "/generation_config.json";
  if (!std::filesystem::exists(path)) return defaults;
  SKEIN_ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  if (!json.is_object())
    return Status(StatusCode::kInvalidArgument, path + " is not a JSON object");
  FieldReader reader(json);
  defaults.temperature = static_cast<float>(reader.Number("temperature", 0, 2).value_or(1));
  defaults.top_p = static_cast<float>(reader.NumberAbove("top_p", 0, 1).value_or(1));
  defaults.top_k = static_cast<int32_t>(reader.Int("top_k", -1, INT32_MAX).value_or(0));
  if (defaults.top_k < 0) defaults.top_k = 0;
  defaults.repetition_penalty = static_cast<float>(
      reader.Number("repetition_penalty", kMinRepetitionPenalty, 10).value_or(1));
  if (!reader.status().ok())
    return Status(reader.status().code(), path + ": " + reader.status().message());
  return defaults;
}

}  // namespace skein
