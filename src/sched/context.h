#pragma once

#include "kv/block_manager.h"
#include "sched/config.h"
#include "sched/cost_model.h"
#include "sched/policies.h"
#include "sched/requests/request_table.h"
#include "skein/engine.h"

namespace skein {

// The state that the parts of a scheduler share. The Scheduler owns it, and it outlives the parts.
// Each part copies the pointers that it uses.
struct SchedulerContext {
  const SchedulerConfig* config = nullptr;
  BlockManager* blocks = nullptr;
  const CostModel* cost = nullptr;
  RequestTable* table = nullptr;
  OrderPolicy* order = nullptr;
  BatchingPolicy* batching = nullptr;
  DecodeSetPolicy* decode_set = nullptr;
  EngineStats* stats = nullptr;  // counters; each is written by one part
};

}  // namespace skein
