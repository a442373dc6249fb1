#pragma once

#include "sched/step.h"

namespace skein {

// Writes the typed plan of a step's rows into step->plans, and into the sequences what is drawn and
// read of them; they are in the step from now on. Returns the plan. REQUIRES: there is a row.
const StepPlan* WritePlan(Step* step);

}  // namespace skein
