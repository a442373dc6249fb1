#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

// What a run in a process of its own took.
struct MilProof {
  int64_t peak_bytes = 0;  // resident at most, beyond what was when the weights had been loaded
  double seconds = 0;      // of the prompt
};

// Runs `command` (a program and its arguments), which is to end in RunMilChild, and watches its
// memory from outside, in /proc. Fails where it fails, and kUnsupported where the system does not
// let the peak be reset.
Result<MilProof> WatchMilChild(const std::vector<std::string>& command);

// The child's side: both calls tell the parent and wait until it has looked.
void TellWeightsLoaded();
void TellDone(double seconds);

}  // namespace skein
