#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/cpu_runtime.h"
#include "sched/config.h"

namespace skein {

struct PreemptionBenchOptions {
  int32_t prompt_tokens = 2048;
  int32_t count = 1000;        // signals for each granularity but `chunk`; 0: none at all
  int32_t per_prefill = 100;   // of them in one prefill, about
  int32_t chunk_count = 100;   // signals at `chunk`, where one prefill has only a few stops
  int32_t chunk_tokens = 512;  // of a step, at granularity `chunk`
  int32_t repetitions = 3;     // prefills with and without checks, alternating; medians count
  uint64_t seed = 1;           // of the prompt and of the moments
};

// Milliseconds from a signal to the executor's standing still (FlowPrefill's blocking time).
struct BlockingTimes {
  std::string granularity;
  int32_t count = 0;
  int32_t stops = 0;  // standstills that answered those signals, several of them at once at times
  double mean_ms = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  // Apart from that: from the moment of a signal to its thread's having woken and raised it.
  double wake_mean_ms = 0;
  double wake_p99_ms = 0;
};

struct PreemptionReport {
  std::vector<BlockingTimes> granularities;
  // An undisturbed prefill, where the executor looks for a signal before each ticket and where it
  // never does.
  double checked_s = 0;
  double unchecked_s = 0;
};

// Whole prefills that RunPreemptionBench takes, about.
int32_t NumPrefills(const PreemptionBenchOptions& options);

// Stops and resumes long prefills through a runtime's executor: a thread raises the signal at
// random moments, a Poisson process over the prefill's time. Moments that find it raised wait for
// the same standstill and count from themselves on, so that the mean is that of a random moment
// however far apart the boundaries are. A step's end is a standstill too. `estimate` is told, once
// known, how many seconds all this takes. Fails with kInternal where a stopped prefill's answer
// differs in a bit from that of an undisturbed one. REQUIRES: the prompt fits a step and the KV
// memory.
Result<PreemptionReport> RunPreemptionBench(CpuRuntime* runtime,
                                            const PreemptionBenchOptions& options,
                                            const std::function<void(double)>& estimate);

// The options and the measurements; `granularities` is empty if no signal was asked for.
nlohmann::ordered_json PreemptionToJson(const PreemptionBenchOptions& options,
                                        const PreemptionReport& report);

}  // namespace skein
