#include "apps/host/decision_profile.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "apps/read_file.h"
#include "apps/read_json.h"
#include "server/decisions/decision_method_names.h"
#include "server/decisions/decision_reads.h"
#include "server/json/field_reader.h"
#include "server/json/json.h"

namespace skein {
namespace {

// The bound between small and large models is a rule of thumb; `skein bench quality` measures a
// model. For one model with 135 million parameters, the reading letters was as good as chance
// (docs/results/decision-quality.md).
constexpr int64_t kSmallModelParameters = 1'000'000'000;

Result<DecisionProfile> ProfileOfFile(const std::string& path, const DecisionProfile& base) {
  SKEIN_ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  Result<DecisionProfile> profile = ParseDecisionProfile(json, base);
  if (profile.ok()) return profile;
  return Status(profile.status().code(), path + ": " + profile.status().message());
}

// The profile of a model that was trained on prompts with letters and whose config has a
// temperature.
Result<DecisionProfile> ProfileOfConfig(const std::string& path, DecisionProfile usual) {
  SKEIN_ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  FieldReader reader(json);
  const auto temperature = reader.NumberAbove("decision_temperature", 0, 100);
  if (!reader.status().ok()) {
    return Status(reader.status().code(), path + ": " + reader.status().message());
  }
  if (!temperature) return usual;
  DecisionMethod method;
  method.temperature = *temperature;
  return DecisionProfile{method, method, method, method};
}

Result<DecisionProfile> ProfileOfFiles(const DecisionProfileSource& source) {
  const DecisionProfile usual = UsualDecisionProfile(source.traits, source.num_parameters);
  const std::string beside = source.model_dir + "/" + kDecisionProfileFile;
  if (FileExists(beside)) return ProfileOfFile(beside, usual);
  const std::string own = UserDecisionProfile(source.model_name);
  if (FileExists(own)) return ProfileOfFile(own, usual);
  return ProfileOfConfig(source.model_dir + "/config.json", usual);
}

}  // namespace

Result<DecisionProfile> LoadDecisionProfile(const DecisionProfileSource& source) {
  SKEIN_ASSIGN_OR_RETURN(DecisionProfile profile, ProfileOfFiles(source));
  const MethodOverride wanted = {.reading = source.reading, .prompt = source.prompt};
  for (DecisionMethod* method : {&profile.predicate, &profile.choice, &profile.score}) {
    *method = MethodOf(*method, wanted);
  }
  return profile;
}

DecisionProfile UsualDecisionProfile(const ModelTraits& traits, int64_t num_parameters) {
  DecisionProfile profile;
  DecisionMethod method;
  if (!traits.generates && traits.embeds) {
    method.reading = Reading::kSimilarity;
    return {method, method, method, method};
  }
  if (num_parameters >= kSmallModelParameters) return profile;
  method.reading = Reading::kWords;
  method.prompt = PromptForm::kQuestion;
  profile.score = method;
  method.calibrated = true;
  profile.predicate = profile.choice = method;
  profile.choice.prompt = PromptForm::kCue;
  profile.relevance.reading = Reading::kLikelihood;
  return profile;
}

std::string UserDecisionProfile(const std::string& model_name) {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  std::string dir;
  if (config != nullptr && *config != '\0') {
    dir = config;
  } else if (home != nullptr && *home != '\0') {
    dir = std::string(home) + "/.config";
  } else {
    return {};
  }
  std::string name;
  for (const char c : model_name) name += c == '/' ? std::string("--") : std::string(1, c);
  return dir + "/skein/" + name + ".decisions.json";
}

}  // namespace skein
