#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "skein/decision_method.h"
#include "skein/model_traits.h"

namespace skein {

// The file beside a model, or in the user's configuration, that says how it is asked.
inline constexpr char kDecisionProfileFile[] = "skein.decisions.json";

// The facts that choose a profile.
struct DecisionProfileSource {
  std::string model_dir;
  std::string model_name;
  int64_t num_parameters = 0;
  ModelTraits traits;
  std::optional<NamedReading> reading;  // --decision-reading; unset: that of the files
  std::optional<PromptForm> prompt;     // --decision-prompt; as above
};

// The first of these that there is, then changed by the options:
//   MODEL_DIR/skein.decisions.json
//   the user's own, UserDecisionProfile(model_name)
//   letters and `decision_temperature` of config.json, of a model trained on docs/decisions.md
//   what UsualDecisionProfile says
// kInvalidArgument names the file and the member.
Result<DecisionProfile> LoadDecisionProfile(const DecisionProfileSource& source);

// How models are asked of which nothing is known: one that only embeds by similarity; of the others
// small ones by calibrated words, since they know texts better than letters, large ones by letters.
DecisionProfile UsualDecisionProfile(const ModelTraits& traits, int64_t num_parameters);

// $XDG_CONFIG_HOME/skein/NAME.decisions.json, by default in ~/.config; '/' in a name becomes "--".
// Empty if neither variable is set.
std::string UserDecisionProfile(const std::string& model_name);

}  // namespace skein
