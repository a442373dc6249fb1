// Compares the preset `auto` with the specialized presets on simulated loads (scripts/exp_auto has
// more).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "apps/sim/sim_replay.h"
#include "base/random.h"

namespace skein {
namespace {

// Equal numbers of short prompts with tight deadlines, long ones with wide deadlines, and prompts
// without deadlines. Every third request comes from one client. A `per_second` above about 12 is
// more than the device can compute.
std::vector<WorkloadRequest> MixedLoad(uint64_t seed, int count, double per_second) {
  Random random(seed);
  std::vector<WorkloadRequest> workload;
  double clock_us = 0;
  for (int i = 0; i < count; ++i) {
    clock_us -= 1e6 / per_second * std::log(1 - random.Uniform());
    const bool is_long = random.OneIn(4);
    WorkloadRequest request;
    request.arrival_us = std::llround(clock_us);
    request.segments = {
        {std::to_string(i), is_long ? random.Between(1000, 12'000) : random.Between(100, 1100)}};
    request.max_tokens = 1;
    if (random.OneIn(2)) request.slo_ttft_us = is_long ? 6'000'000 : 500'000;
    if (random.OneIn(3)) request.user = "busy";
    workload.push_back(request);
  }
  return workload;
}

ReplayOutcome Simulated(const std::vector<WorkloadRequest>& workload, const std::string& preset) {
  ReplayOptions options;
  options.engine.scheduler.policies = FindPreset(preset)->policies;
  options.engine.scheduler.max_model_len = 20'000;
  options.engine.scheduler.max_num_batched_tokens = 2048;
  options.engine.scheduler.max_num_seqs = 64;
  options.tokens.vocab = 100'000;
  const std::string devices = SKEIN_SOURCE_DIR "/devices";
  const DeviceDescription device = LoadDevice(devices + "/a800-80-sxm.json").value();
  const SimModelShape shape = LoadShape(devices + "/models/llama-3.1-8b", "").value();
  auto outcome = Replay(device, shape, workload, options);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return std::move(outcome).value();
}

double DeadlinesMet(const ReplayOutcome& outcome) {
  return MakeLoadReport(outcome.records, outcome.duration_us, {}).total.slo_attainment.value();
}

// The order's bound on a wait is two seconds and three times the wait under first come, first
// served, and for a request with a deadline at least max_late_us after the deadline. Overdue
// requests go first, but several may be overdue at once: then a wait can be longer than that bound.
TEST(AutoPreset, StarvesNoRequest) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const double per_second : {6.0, 14.0, 25.0}) {
      const std::vector<WorkloadRequest> workload = MixedLoad(seed, 300, per_second);
      const ReplayOutcome in_line = Simulated(workload, "chunked-fcfs");
      const ReplayOutcome outcome = Simulated(workload, "auto");
      for (size_t i = 0; i < workload.size(); ++i) {
        const TimeUs in_line_us = in_line.records[i].ttft_us;
        TimeUs bound_us = 4 * in_line_us + 10'000'000;
        if (const auto slo_us = workload[i].slo_ttft_us) {
          bound_us = std::max(bound_us, *slo_us + DeadlineConfig{}.max_late_us + in_line_us);
        }
        EXPECT_LE(outcome.records[i].ttft_us, bound_us)
            << seed << " " << per_second << ": request " << i << ", in line " << in_line_us;
      }
    }
  }
}

TEST(AutoPreset, MeetsTheDeadlinesThatFlowPrefillMeets) {
  for (const double per_second : {8.0, 14.0}) {
    const std::vector<WorkloadRequest> workload = MixedLoad(9, 400, per_second);
    const ReplayOutcome flow = Simulated(workload, "flow-prefill");
    const ReplayOutcome outcome = Simulated(workload, "auto");
    EXPECT_GE(DeadlinesMet(outcome), 0.97 * DeadlinesMet(flow));
    EXPECT_GT(DeadlinesMet(outcome), 1.5 * DeadlinesMet(Simulated(workload, "prelude")));
  }
}

}  // namespace
}  // namespace skein
