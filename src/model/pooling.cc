#include "model/pooling.h"

#include <simdjson.h>

#include "io/json_file.h"

namespace skein {

Result<std::optional<Pooling>> LoadPooling(const std::string& model_dir) {
  Result<JsonFile> file = JsonFile::Load(model_dir + "/1_Pooling/config.json");
  if (file.status().code() == StatusCode::kNotFound) return std::optional<Pooling>();
  if (!file.ok()) return file.status();
  constexpr struct {
    const char* key;   // the flag's name in older files
    const char* name;  // the value of pooling_mode in newer files
    Pooling pooling;
  } kModes[] = {{"pooling_mode_lasttoken", "lasttoken", Pooling::kLast},
                {"pooling_mode_mean_tokens", "mean", Pooling::kMean},
                {"pooling_mode_cls_token", "cls", Pooling::kCls}};
  const JsonObject& json = file->root();
  SKEIN_ASSIGN_OR_RETURN(const std::optional<bool> with_prompt, json.Bool("include_prompt"));
  if (!with_prompt.value_or(true)) {
    return Status(StatusCode::kUnsupported,
                  json.where() + ": 'include_prompt' is false; only true is supported",
                  "include_prompt");
  }
  std::optional<Pooling> pooling;
  if (json.Has("pooling_mode")) {
    SKEIN_ASSIGN_OR_RETURN(const std::optional<std::string> name, json.String("pooling_mode"));
    for (const auto& mode : kModes) {
      if (name == mode.name) return std::optional<Pooling>(mode.pooling);
    }
    return Status(
        StatusCode::kUnsupported,
        json.where() + ": 'pooling_mode' is '" + *name + "'; supported are lasttoken, mean and cls",
        "pooling_mode");
  }
  int num_modes = 0;
  for (const auto& [key, value] : json.members()) {
    if (!key.starts_with("pooling_mode_")) continue;
    SKEIN_ASSIGN_OR_RETURN(const std::optional<bool> on, json.Bool(key));
    if (!on.value_or(false)) continue;
    ++num_modes;
    for (const auto& mode : kModes) {
      if (key == mode.key) pooling = mode.pooling;
    }
  }
  if (num_modes == 1 && pooling) return pooling;
  return Status(StatusCode::kUnsupported,
                json.where() +
                    ": exactly one of pooling_mode_lasttoken, pooling_mode_mean_tokens " +
                    "and pooling_mode_cls_token must be on, and no other mode",
                "pooling_mode");
}

}  // namespace skein
