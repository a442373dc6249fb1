#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "skein/decision_method.h"
#include "skein/model_traits.h"

namespace skein {

// A file in a model's directory, or in the user's configuration, that says how decisions are read.
inline constexpr char kDecisionProfileFile[] = "skein.decisions.json";

// The facts that choose a profile.
struct DecisionProfileSource {
  std::string model_dir;
  std::string model_name;
  int64_t num_parameters = 0;
  ModelTraits traits;
  std::optional<NamedReading> reading;  // --decision-reading; unset: that of the files
  std::optional<PromptForm> prompt;     // --decision-prompt; unset: that of the files
};

// The first of these profiles that exists, with the changes that the options ask for:
//   MODEL_DIR/skein.decisions.json
//   the user's own, UserDecisionProfile(model_name)
//   letters with config.json's `decision_temperature`, of a model trained on docs/decisions.md
//   UsualDecisionProfile
// kInvalidArgument names the file and the member.
Result<DecisionProfile> LoadDecisionProfile(const DecisionProfileSource& source);

// The profile of a model without a file: similarity if the model only embeds, calibrated words if
// it is small, otherwise letters. Small models know texts better than letters.
DecisionProfile UsualDecisionProfile(const ModelTraits& traits, int64_t num_parameters);

// The path $XDG_CONFIG_HOME/skein/NAME.decisions.json; by default XDG_CONFIG_HOME is ~/.config. A
// '/' in the name becomes "--". Empty if neither variable is set.
std::string UserDecisionProfile(const std::string& model_name);

}  // namespace skein
