#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

// The time and memory of a run in a process of its own.
struct MilProof {
  int64_t peak_bytes = 0;  // resident at most, beyond what was when the weights had been loaded
  bool stopped = false;    // before its end: the peak is at least that
  double seconds = 0;      // of the prompt; 0 where it was stopped
};

// Runs `command` (a program and its arguments), which is to end in TellDone, and watches its memory
// from outside, in /proc. With `enough_bytes` above 0 the run is stopped soon after its peak has
// passed that. Fails where it fails, and kUnsupported where the system does not let the peak be
// reset.
Result<MilProof> WatchMilChild(const std::vector<std::string>& command, int64_t enough_bytes = 0);

// The child's side: both calls tell the parent and wait until it has looked.
void TellWeightsLoaded();
void TellDone(double seconds);

}  // namespace skein
