#pragma once

#include <cstdint>
#include <iterator>
#include <memory>

#include "sched/config.h"
#include "sched/sequence.h"
#include "skein/request.h"

namespace skein {

// Returns ok if a request can run to its end when it is alone. Fails with kInvalidArgument, naming
// the field and the numbers.
Status CheckFits(const SchedulerConfig& config, const Request& request);

// The most tokens of output that the request can get behind a prompt of `prompt_len` tokens; 0 if
// it does not generate.
int32_t BudgetOf(const SchedulerConfig& config, const Request& request, int64_t prompt_len);
ExecutionClass ClassOf(const SchedulerConfig& config, const Request& request, int64_t prompt_len);
// The size that a request's run grows with: the budget if it decodes, else the prompt's tokens.
int64_t SizeOf(const SchedulerConfig& config, const Request& request, int64_t prompt_len);

// The same for the request's own prompt.
inline int32_t BudgetOf(const SchedulerConfig& config, const Request& request) {
  return BudgetOf(config, request, std::ssize(request.prompt));
}
inline ExecutionClass ClassOf(const SchedulerConfig& config, const Request& request) {
  return ClassOf(config, request, std::ssize(request.prompt));
}
inline int64_t SizeOf(const SchedulerConfig& config, const Request& request) {
  return SizeOf(config, request, std::ssize(request.prompt));
}

// The bound on the request's wait, from its arrival: half of its timeout, since the rest is left
// for errors of estimates and for the run itself. Without a timeout it is `max_wait_us`. 0: none.
TimeUs MaxWaitUs(const Request& request, TimeUs max_wait_us);

// Makes the scheduler's record of the request that is number `arrival`, with one sequence. Sets the
// request's execution class and its budget. The prompt is not hashed yet. REQUIRES: CheckFits is
// ok.
std::unique_ptr<RequestRecord> MakeRecord(const SchedulerConfig& config, RequestId id,
                                          uint64_t arrival, Request request, TimeUs now_us);

}  // namespace skein
