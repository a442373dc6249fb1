#pragma once

#include "kv/block_manager.h"
#include "sched/step.h"

namespace skein {

// Writes the typed plan of a step's rows into step->plans, and the draws and reads into the rows'
// sequences. From then on, these sequences are in the step. The plan takes the copies to and from
// the host that `blocks` has planned. Returns the plan. REQUIRES: there is a row.
const StepPlan* WritePlan(Step* step, BlockManager* blocks);

}  // namespace skein
