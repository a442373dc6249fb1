#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace skein {

// The time and memory of a run in a child process.
struct MilProof {
  int64_t peak_bytes = 0;  // peak of resident memory above that after the weights had been loaded
  bool stopped = false;    // the run was stopped early: the peak is at least this
  double seconds = 0;      // time of the prompt; 0 if the run was stopped
};

// Runs `command` (a program and its arguments), which must end with TellDone, and watches its
// memory through /proc. If `enough_bytes` is above 0, the run is stopped soon after its peak
// exceeds that number. Fails if the command fails; kUnsupported if the system does not allow the
// peak to be reset.
Result<MilProof> WatchMilChild(const std::vector<std::string>& command, int64_t enough_bytes = 0);

// Called by the child: each call tells the parent and waits until the parent has checked the
// memory.
void TellWeightsLoaded();
void TellDone(double seconds);

}  // namespace skein
