#include "apps/decision_temperature.h"

#include "apps/read_json.h"
#include "server/field_reader.h"

namespace skein {

Result<float> LoadDecisionTemperature(const std::string& model_dir) {
  const std::string path = model_dir + "/config.json";
  SKEIN_ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  if (!json.is_object())
    return Status(StatusCode::kInvalidArgument, path + " is not a JSON object");
  FieldReader reader(json);
  const double temperature = reader.NumberAbove("decision_temperature", 0, 100).value_or(1);
  if (!reader.status().ok())
    return Status(reader.status().code(), path + ": " + reader.status().message());
  return static_cast<float>(temperature);
}

}  // namespace skein
