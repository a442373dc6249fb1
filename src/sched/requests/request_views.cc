#include "sched/requests/request_views.h"

#include <algorithm>
#include <unordered_set>

namespace skein {
namespace {

using State = RequestView::State;

// The order of the list: running requests, suspended ones, waiting ones.
int PlaceOf(State state) {
  return state == State::kRunning ? 0 : state == State::kSuspended ? 1 : 2;
}

struct Entry {
  const RequestRecord* request;
  State state;
};

RequestView RequestViewOf(const Entry& entry, TimeUs now_us) {
  const RequestRecord& request = *entry.request;
  RequestView view;
  view.id = request.id;
  view.state = entry.state;
  view.oneshot = request.execution_class == ExecutionClass::kOneShot;
  view.priority = request.request.priority;
  view.adapter_id = request.request.adapter_id;
  view.num_samples = NumSamples(request.request);
  view.prompt_tokens = request.prompt_len;
  view.cached_tokens = request.cached_tokens;
  for (const auto& sequence : request.sequences) {
    view.computed_tokens = std::max(view.computed_tokens, sequence->num_computed);
    const auto num_tokens = static_cast<int32_t>(sequence->tokens.size());
    view.output_tokens = std::max(view.output_tokens, num_tokens - request.prompt_len);
  }
  view.age_us = now_us - request.times.arrival_us;
  if (request.request.slo_ttft_us && view.output_tokens == 0) {
    view.slack_us = request.deadline_us - now_us;
  }
  return view;
}

}  // namespace

void AddRequestViews(const RequestTable& table, const std::vector<Step>& suspended, TimeUs now_us,
                     EngineView* view) {
  std::unordered_set<const RequestRecord*> stopped;
  for (const Step& step : suspended) {
    step.ForEachPrefilling([&](const Sequence* sequence) { stopped.insert(sequence->request); });
  }
  std::vector<Entry> entries;
  for (const auto& [id, request] : table.requests()) {
    if (request->num_live == 0) continue;
    const bool runs = std::ranges::any_of(
        request->sequences, [](const auto& sequence) { return IsRunning(sequence->state); });
    const State state = stopped.contains(request.get()) ? State::kSuspended
                        : runs                          ? State::kRunning
                                                        : State::kWaiting;
    entries.push_back({request.get(), state});
    view->num_running += state == State::kRunning;
    view->num_suspended += state == State::kSuspended;
    view->num_waiting += state == State::kWaiting;
  }
  const auto shown = std::min(entries.size(), EngineView::kRequestsMax);
  std::partial_sort(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(shown),
                    entries.end(), [](const Entry& a, const Entry& b) {
                      if (a.state != b.state) return PlaceOf(a.state) < PlaceOf(b.state);
                      if (a.request->urgency != b.request->urgency) {
                        return a.request->urgency < b.request->urgency;
                      }
                      return a.request->arrival < b.request->arrival;
                    });
  for (size_t i = 0; i < shown; ++i) view->requests.push_back(RequestViewOf(entries[i], now_us));
}

}  // namespace skein
