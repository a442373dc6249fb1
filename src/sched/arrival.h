#pragma once

#include <cstdint>
#include <memory>

#include "sched/config.h"
#include "sched/sequence.h"
#include "skein/request.h"

namespace skein {

// Returns ok if a request can run to its end when it is alone. Fails with kInvalidArgument, naming
// the field and the numbers.
Status CheckFits(const SchedulerConfig& config, const Request& request);

// Makes the scheduler's record of the request that is number `arrival`, with one sequence. Sets the
// request's execution class and its budget. The prompt is not hashed yet. REQUIRES: CheckFits is
// ok.
std::unique_ptr<RequestRecord> MakeRecord(const SchedulerConfig& config, RequestId id,
                                          uint64_t arrival, Request request, TimeUs now_us);

}  // namespace skein
