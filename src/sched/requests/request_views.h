#pragma once

#include <vector>

#include "sched/requests/request_table.h"
#include "sched/step.h"
#include "skein/engine_view.h"

namespace skein {

// Fills in the requests of `view` and their counts. O(n log n) for n requests.
void AddRequestViews(const RequestTable& table, const std::vector<Step>& suspended, TimeUs now_us,
                     EngineView* view);

}  // namespace skein
