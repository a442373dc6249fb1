#pragma once

#include <ostream>

#include "sched/record/observer.h"

namespace skein {

// Writes every event of a scheduler as one JSON object per line. The lines suffice to replay the
// events in a fresh scheduler with the same plans, or to draw a timeline. Times are microseconds on
// the engine's clock.
//
//   {"event":"start", <members of SchedulerConfig>}
//   {"event":"profile","t":T,"cost":[...],"decode_cost":[...]}
//                                                    from now on in place of those of "start"
//   {"event":"arrive","t":T,"id":I,"prompt":[...],"output":"generate|labels|embedding|classes",
//    "max_tokens":..., <other members of the request that the scheduler reads>}
//                                                    requests that generate nothing have defaults
//   {"event":"cancel","t":T,"id":I,"sample":-1}      sample -1: the whole request
//   {"event":"plan","t":T,"iteration":N,"class":"oneshot|decode|mixed","copies":[[from,to],...],
//    "prefills":[ROW,...],"decodes":[ROW,...]}       ROW: [id, sample, begin, end, number of draws,
//                                                    of reads (0 or 1), of prompt
//                                                    log-probabilities]; a row that continues a
//                                                    common prefix has two more: the prefix's id,
//                                                    tokens of its fork
//   {"event":"preempt","t":T,"iteration":N}          that step stops: it is suspended or dropped
//   {"event":"resume","t":T,"iteration":N}           the step goes on
//   {"event":"complete","t":T,"tokens":[...],"reads":[...],"prompt_logprobs":[...]}
//                                                    tokens: null where a draw was not finite;
//                                                    reads, prompt_logprobs: one bool a row, finite
class SchedulerRecorder final : public SchedulerObserver {
 public:
  // `out` outlives the recorder.
  explicit SchedulerRecorder(std::ostream* out) : out_(out) {}

  void OnStart(const SchedulerConfig& config) override;
  void OnProfile(const CostFit& cost, const DecodeFit& decode_cost, TimeUs now_us) override;
  void OnArrive(RequestId id, const Request& request, TimeUs now_us) override;
  void OnCancel(RequestId id, int32_t sample, TimeUs now_us) override;
  void OnPlan(int64_t iteration, const StepPlan& plan, TimeUs now_us) override;
  void OnPreempt(int64_t iteration, TimeUs now_us) override;
  void OnResume(int64_t iteration, TimeUs now_us) override;
  void OnComplete(const StepResults& results, TimeUs now_us) override;

 private:
  std::ostream* out_;
};

}  // namespace skein
