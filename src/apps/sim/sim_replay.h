#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/sim/workload.h"
#include "base/result.h"
#include "bench/serving/load_report.h"
#include "sched/policies.h"
#include "sched/record/observer.h"
#include "sim/device.h"
#include "sim/step_cost.h"
#include "skein/config.h"
#include "skein/engine.h"

namespace skein {

struct ReplayOptions {
  // If the scheduler's num_kv_blocks is 0, as many blocks as fit the device beside weights and
  // activations.
  EngineConfig engine;
  double memory_utilization = 0.9;
  Parallelism parallelism;
  int32_t replicas = 1;  // each has its own scheduler; `user` decides which replica gets a request
  double speed = 1;      // arrival times are divided by this
  int32_t concurrency = 0;
  TokenRange tokens;
  KvReading kv_reading = KvReading::kEachRow;
  TimeUs round_us = 0;  // time of a scheduling round, at the beginning of each step
  std::vector<SchedulerObserver*> observers;  // they observe every replica; they outlive the replay
  PolicyLists policies = BuiltInPolicies();
};

// Sums over all replicas of the members of EngineStats with these names.
struct ReplayTotals {
  uint64_t step_us = 0;  // time in steps of any kind
  uint64_t num_preemptions = 0;
  uint64_t prefix_groups_joined = 0;
  uint64_t prefix_groups_overdue = 0;
  uint64_t prefix_groups_stops = 0;

  void Add(const EngineStats& stats);
};

struct ReplayOutcome {
  std::vector<LoadRecord> records;  // in the workload's order
  TimeUs duration_us = 0;
  int32_t num_kv_blocks = 0;  // of each replica
  ReplayTotals totals;
  KvReadTotals kv_reads;  // of all replicas
};

// Runs a workload through the simulated device; each request begins when it is sent. Prompts are
// made when they arrive. Fails if device, shape and configuration do not fit together, and for
// prompts that are text.
Result<ReplayOutcome> Replay(const DeviceDescription& device, const SimModelShape& shape,
                             const std::vector<WorkloadRequest>& workload,
                             const ReplayOptions& options);

// Reads a model's shape from its config.json alone. Weights are of `weight_type`; empty: FP8 if the
// config says so, otherwise bf16.
Result<SimModelShape> LoadShape(const std::string& model_dir, const std::string& weight_type);

}  // namespace skein
