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
  EngineConfig engine;  // num_kv_blocks of the scheduler 0: what fits the device beside weights and
                        // activations
  double memory_utilization = 0.9;
  Parallelism parallelism;
  int32_t replicas = 1;  // each with a scheduler of its own; `user` decides which
  double speed = 1;      // arrival times are divided by this
  int32_t concurrency = 0;
  TokenRange tokens;
  KvReading kv_reading = KvReading::kEachRow;
  TimeUs round_us = 0;                        // of scheduling, at the beginning of each step
  std::vector<SchedulerObserver*> observers;  // of every replica; outlive the replay
  PolicyLists policies = BuiltInPolicies();
};

// Sums over all replicas; the members are EngineStats'.
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

// Runs a workload through the simulated device, each request from the moment it is sent. Prompts
// are made when they arrive. Fails where the device, the shape or the configuration do not go
// together, and for prompts that are text.
Result<ReplayOutcome> Replay(const DeviceDescription& device, const SimModelShape& shape,
                             const std::vector<WorkloadRequest>& workload,
                             const ReplayOptions& options);

// A model's shape from its config.json alone. Weights are of `weight_type`; empty: FP8 where the
// config says so, else bf16.
Result<SimModelShape> LoadShape(const std::string& model_dir, const std::string& weight_type);

}  // namespace skein
