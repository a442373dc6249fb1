#pragma once

#include <string>

#include "base/result.h"
#include "skein/decision_method.h"

namespace skein {

// The place to which a profile was written, in words for the user.
struct WrittenProfile {
  std::string path;
  std::string backup;  // where the file that was there before is now; empty: there was none
  std::string shadow;  // a file that is read instead of this one; empty: none
};

// Writes a profile for LoadDecisionProfile: beside the model if its directory may be written, else
// the user's own. A file that is there is renamed to NAME.bak, in place of an older one. Errors
// name the path.
Result<WrittenProfile> WriteDecisionProfile(const DecisionProfile& profile,
                                            const std::string& model_dir,
                                            const std::string& model_name);

}  // namespace skein
