#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "server/generation/generation_session.h"
#include "server/model_registry.h"
#include "server/scheduling_defaults.h"
#include "skein/engine.h"

namespace skein {

// The content of /metrics: histograms and counters of finished requests, which this class keeps,
// and the engine's own counters, which are read on demand. Names follow vLLM, so that its
// dashboards work; other names begin with skein_. Thread-safe; SetModels must be called once,
// before the other functions.
class Metrics {
 public:
  struct RequestRecord {
    int32_t prompt_tokens = 0;
    int32_t generation_tokens = 0;  // sum over all choices
    // The largest number of tokens of one choice. The choices of a request get their tokens in
    // parallel.
    int32_t longest_choice_tokens = 0;
    TimeUs tokenize_us = 0;
    RequestTimes times;
    bool one_shot = false;  // the token budget is at most one
    RouteClass route_class = RouteClass::kOther;
    std::optional<TimeUs> slo_ttft_us;
    std::optional<TimeUs> slo_tpot_us;
  };

  Metrics();

  void SetModels(const ModelRegistry& models);

  // Counts the end of a choice. Called once for each choice.
  void CountFinish(const ModelEntry& model, FinishReason reason);
  void ObserveInterToken(const ModelEntry& model, TimeUs interval_us);
  // Records the times of a request. Called once for each request of the engine, when all its
  // choices have ended.
  void Observe(const ModelEntry& model, const RequestRecord& record);

  // Writes all metrics in the text format of Prometheus.
  std::string Render(const ModelRegistry& models) const;

 private:
  struct PerModel {
    prometheus::Histogram* ttft;
    prometheus::Histogram* inter_token;
    prometheus::Histogram* e2e;
    prometheus::Histogram* queue;
    prometheus::Histogram* prefill;
    prometheus::Histogram* decode;
    prometheus::Histogram* tokenize;
    prometheus::Histogram* split_queue;
    prometheus::Histogram* inference;
    prometheus::Histogram* prompt_tokens;
    prometheus::Histogram* generation_tokens;
    prometheus::Histogram* e2e_oneshot;
    prometheus::Histogram* e2e_decode;
    std::map<FinishReason, prometheus::Counter*> finished;
  };

  // Counts a request with the deadline `slo_us`.
  void CountSlo(prometheus::Family<prometheus::Counter>* family, const ModelEntry& model,
                RouteClass route_class, TimeUs slo_us, bool met);

  prometheus::Registry registry_;
  // The labels are the class of the route, the deadline, and whether it was met.
  prometheus::Family<prometheus::Counter>* slo_ttft_;
  prometheus::Family<prometheus::Counter>* slo_tpot_;
  std::map<std::string, PerModel> models_;  // keyed by name
};

}  // namespace skein
