#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/runtime.h"
#include "sched/config.h"

namespace skein {

struct PreemptionBenchOptions {
  int32_t prompt_tokens = 2048;
  int32_t count = 1000;        // signals for each granularity except `chunk`; 0: no signals at all
  int32_t per_prefill = 100;   // about so many signals in one prefill
  int32_t chunk_count = 100;   // signals at `chunk`, where a prefill has only a few possible stops
  int32_t chunk_tokens = 512;  // tokens of a step at granularity `chunk`
  int32_t repetitions = 3;     // alternating prefills with and without checks; medians are reported
  uint64_t seed = 1;           // of the prompt and of the times of signals
};

// Milliseconds from a signal to the executor's standstill (the blocking time in FlowPrefill).
struct BlockingTimes {
  std::string granularity;
  int32_t count = 0;
  int32_t stops = 0;  // standstills after signals; one standstill may answer several signals
  double mean_ms = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  // Separately: the time from a signal's due time until its thread has woken up and raised it.
  double wake_mean_ms = 0;
  double wake_p99_ms = 0;
};

struct PreemptionReport {
  std::vector<BlockingTimes> granularities;
  // The seconds of a prefill without signals: one in which the executor checks for a signal before
  // each ticket, and one in which it never does.
  double checked_s = 0;
  double unchecked_s = 0;
};

// About the number of whole prefills that RunPreemptionBench computes.
int32_t NumPrefills(const PreemptionBenchOptions& options);

// Stops and resumes long prefills through a runtime's executor. A thread raises the signal at
// random times, a Poisson process over the prefill's time. If the signal is still raised at the
// next time, that time counts, too: it waits from then on for the same standstill. So the mean is
// that of a random time, however far apart the standstills are. A step's end is a standstill, too.
// `estimate` is called with the seconds that the benchmark takes, once they are known. kInternal if
// a stopped prefill's answer differs in a bit from that of an undisturbed one. REQUIRES: the prompt
// fits a step and the KV memory.
Result<PreemptionReport> RunPreemptionBench(Runtime* runtime, const PreemptionBenchOptions& options,
                                            const std::function<void(double)>& estimate);

// The options and the measurements as JSON. `granularities` is empty if the options ask for no
// signals to running prefills.
nlohmann::ordered_json PreemptionToJson(const PreemptionBenchOptions& options,
                                        const PreemptionReport& report);

}  // namespace skein
