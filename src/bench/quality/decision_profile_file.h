#pragma once

#include <string>

#include "base/result.h"
#include "skein/decision_method.h"

namespace skein {

// Tells where a profile was written, in words for the user.
struct WrittenProfile {
  std::string path;
  std::string backup;  // the new path of the file that was there before; empty: there was none
  std::string shadow;  // another file that is read before this one; empty: none
};

// Writes a profile for LoadDecisionProfile: to the model's directory if it is writable, otherwise
// to the user's own directory. An existing file is renamed to NAME.bak, which replaces an older
// backup. Errors name the path.
Result<WrittenProfile> WriteDecisionProfile(const DecisionProfile& profile,
                                            const std::string& model_dir,
                                            const std::string& model_name);

}  // namespace skein
