#include "engine/engine_loop.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/check.h"
#include "engine/validate.h"
#include "sched/config.h"

namespace skein {
namespace {

constexpr int32_t kViewRequestsMax = 16;

// The bound on queued events. There are at most max_queued_requests arrivals. Each live request is
// cancelled at most once, and each of its samples at most once. Each running request holds a block,
// a slot or a token of the step, or waits to get these back.
size_t MaxEvents(const EngineConfig& config) {
  const auto queued = static_cast<size_t>(config.max_queued_requests);
  const SchedulerConfig& limits = config.scheduler;
  const auto running = static_cast<size_t>(limits.num_kv_blocks) + limits.max_num_seqs +
                       limits.max_num_batched_tokens;
  return queued + (queued + 2 * running) * (1 + static_cast<size_t>(limits.max_num_seqs)) +
         kViewRequestsMax + EngineLoop::kMaxVisits;
}

// Gives all requests of a group the earliest deadline among them.
void ShareDeadline(std::vector<Request>* requests) {
  std::optional<TimeUs> soonest_us;
  for (const Request& request : *requests) {
    if (!request.slo_ttft_us) continue;
    soonest_us = std::min(soonest_us.value_or(*request.slo_ttft_us), *request.slo_ttft_us);
  }
  for (Request& request : *requests) request.slo_ttft_us = soonest_us;
}

int64_t NumTokens(const std::vector<Request>& requests) {
  int64_t count = 0;
  for (const Request& request : requests) count += std::ssize(request.prompt);
  return count;
}

// The bound of a step with prompts and decodes, if waiting is bounded. The answer of an accepted
// request must not take much longer than the request waited.
constexpr TimeUs kMixedStepUs = 100'000;

// A request is accepted if its estimated wait is at most this; 0: any wait. Half of a client's time
// is left for errors of the estimate and for the work itself.
TimeUs MaxWaitUs(const EngineConfig& config, const Request& request) {
  return request.timeout_us ? std::max<TimeUs>(1, *request.timeout_us / 2) : config.max_wait_us;
}

int64_t SecondsUntil(TimeUs us) { return std::max<int64_t>(1, (us + 999'999) / 1'000'000); }

// The estimate of a prompt token's time before any measurement, from the profile of the device.
double UsPerToken(const CostFit& fit) {
  constexpr int64_t kTokens = 256;
  return fit == CostFit{} ? 0 : PredictUs(fit, WorkOf(kTokens, 0)) / kTokens;
}

}  // namespace

EngineLoop::EngineLoop(const EngineConfig& config, const SchedulerConfig& scheduler_config,
                       Executor* executor, const Clock* clock,
                       std::vector<SchedulerObserver*> observers)
    : config_(config),
      scheduler_config_(scheduler_config),
      limits_{.vocab_size = config.vocab_size,
              .max_model_len = scheduler_config.max_model_len,
              .max_num_seqs = scheduler_config.max_num_seqs,
              .max_logprobs = config.max_logprobs,
              .max_queued_requests = config.max_queued_requests,
              .max_whole_prompt_len = scheduler_config.max_whole_prompt_len,
              .max_tail_len = MaxTailLen(scheduler_config),
              .generates = config.generates,
              .embeds = config.embeds,
              .classifies = config.classifies,
              .decides = config.decides,
              .num_actions = config.num_actions},
      clock_(clock),
      events_(MaxEvents(config)),
      core_(scheduler_config, executor, clock, std::move(observers),
            [this](RequestId id) { NoteEnded(id); }) {
  if (config.max_wait_us > 0) core_.set_mixed_step_us(kMixedStepUs);
  queue_.wait = WaitEstimate(UsPerToken(scheduler_config.cost));
  published_stats_ = core_.Stats();
  if (Preempts(scheduler_config.policies.sharing)) {
    alarm_.emplace(clock, [this] { RaiseSignal(); });
    core_.set_alarm([this](TimeUs at_us) { alarm_->Set(at_us); });
  }
  thread_ = std::thread([this] { Run(); });
}

EngineLoop::~EngineLoop() { Shutdown(); }

Status EngineLoop::Check(const Request& request) const {
  SKEIN_RETURN_IF_ERROR(ValidateRequest(limits_, request));
  return Scheduler::CheckFits(scheduler_config_, request);
}

Status EngineLoop::Submit(Request request, OutputCallback callback, RequestId* id) {
  SKEIN_RETURN_IF_ERROR(Check(request));
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  std::vector<RequestId> ids;
  SKEIN_RETURN_IF_ERROR(Enqueue(std::move(requests), std::move(callback), &ids));
  *id = ids.front();
  return Status::Ok();
}

Status EngineLoop::SubmitGroup(std::vector<Request> requests, OutputCallback callback,
                               std::vector<RequestId>* ids) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const Status status = Check(requests[i]);
    if (!status.ok()) {
      return {status.code(), fmt::format("{}: {}", i, status.message()), status.param()};
    }
  }
  ShareDeadline(&requests);
  return Enqueue(std::move(requests), std::move(callback), ids);
}

Status EngineLoop::Enqueue(std::vector<Request> requests, OutputCallback callback,
                           std::vector<RequestId>* ids) {
  const std::lock_guard lock(mutex_);
  if (!accepting_) {
    return {StatusCode::kUnavailable, "the engine is shutting down and takes no more requests"};
  }
  SKEIN_RETURN_IF_ERROR(CheckQueue(requests));
  const auto count = static_cast<int32_t>(requests.size());
  ids->clear();
  if (requests.empty()) return Status::Ok();
  const RequestId first_id = next_id_;
  const uint64_t group = count > 1 ? next_group_++ : 0;
  for (Request& request : requests) {
    request.group.id = group;
    ids->push_back(next_id_);
    live_[next_id_++].num_samples = NumSamples(request);
  }
  queue_.num_arriving += count;
  queue_.tokens_arriving += NumTokens(requests);
  SKEIN_CHECK(events_.TryPush(
      Arrival{first_id, std::move(requests), std::move(callback), clock_->NowUs()}));
  RaiseSignal();
  return Status::Ok();
}

Status EngineLoop::CheckQueue(const std::vector<Request>& requests) const {
  const auto count = static_cast<int32_t>(requests.size());
  const int32_t waiting = queue_.num_arriving + queue_.num;
  const TimeUs wait_us = queue_.wait.WaitOf(queue_.tokens_arriving + queue_.tokens);
  if (count > config_.max_queued_requests - waiting) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{} requests are waiting, {} more exceed the limit of {} "
                              "(max_queued_requests)",
                              waiting, count, config_.max_queued_requests))
        .RetryAfter(SecondsUntil(wait_us / 2));
  }
  for (const Request& request : requests) {
    const TimeUs bound_us = MaxWaitUs(config_, request);
    if (bound_us == 0 || wait_us <= bound_us) continue;
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("a new request would wait {:.1f} s, longer than {:.1f} s: {} are "
                              "waiting",
                              1e-6 * static_cast<double>(wait_us),
                              1e-6 * static_cast<double>(bound_us), waiting))
        .RetryAfter(SecondsUntil(wait_us - bound_us / 2));
  }
  return Status::Ok();
}

void EngineLoop::Cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end() || found->second.cancelled) return;
  found->second.cancelled = true;
  PushCancellation(id, -1);
}

void EngineLoop::CancelSample(RequestId id, int32_t sample) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end() || sample < 0 || sample >= found->second.num_samples) return;
  if (found->second.cancelled_samples.insert(sample).second) PushCancellation(id, sample);
}

void EngineLoop::PushCancellation(RequestId id, int32_t sample) {
  // The queue refuses events only after Close. Then every request ends anyway.
  SKEIN_CHECK(events_.TryPush(Cancellation{id, sample}) || !accepting_);
  RaiseSignal();
}

bool EngineLoop::VisitBlocks(std::function<void(BlockManager*)> visit) {
  if (++num_visits_ <= kMaxVisits && events_.TryPush(BlockVisit{std::move(visit)})) {
    RaiseSignal();
    return true;
  }
  --num_visits_;
  return false;
}

// Called after an event has been put into the queue, or when the alarm rings.
void EngineLoop::RaiseSignal() {
  if (!Preempts(scheduler_config_.policies.sharing)) return;
  TimeUs nobody = 0;
  signal_us_.compare_exchange_strong(nobody, clock_->NowUs());
  preempt_.store(true, std::memory_order_relaxed);
}

// Called before the queue is drained, so that a signal raised after this call is seen later. The
// signal's time is cleared last, so a signal raised in between is not timed. In the other order,
// its time would stay and be counted for a later signal.
void EngineLoop::Acknowledge() {
  preempt_.store(false);
  signal_us_.store(0);
  // Shutdown stores quit_ before preempt_, and all of these accesses are sequentially consistent.
  // So either this thread sees quit_ here, or Shutdown's signal comes after the store above.
  if (quit_.load()) preempt_.store(true);
}

EngineStats EngineLoop::Stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = published_stats_;
  stats.num_requests_waiting += queue_.num_arriving;
  return stats;
}

Status EngineLoop::View(std::function<void(EngineView)> done) {
  const std::lock_guard lock(mutex_);
  if (queue_.num_views == kViewRequestsMax) {
    return {StatusCode::kResourceExhausted, "too many wait for a view of the scheduler"};
  }
  if (!events_.TryPush(ViewRequest{std::move(done)})) {
    return {StatusCode::kUnavailable, "the engine was shut down"};
  }
  ++queue_.num_views;
  RaiseSignal();
  return Status::Ok();
}

bool EngineLoop::Drain(int64_t timeout_us) {
  std::unique_lock lock(mutex_);
  accepting_ = false;
  return all_ended_.wait_for(lock, std::chrono::microseconds(timeout_us),
                             [this] { return live_.empty(); });
}

void EngineLoop::Shutdown() {
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
  }
  quit_.store(true);
  preempt_.store(true);
  events_.Close();
  const std::lock_guard lock(shutdown_mutex_);
  if (thread_.joinable()) thread_.join();
}

void EngineLoop::Run() {
  while (!quit_.load(std::memory_order_relaxed)) {
    batch_.clear();
    if (core_.empty()) {
      if (!events_.WaitAndDrain(&batch_)) break;
      const auto* arrival = batch_.empty() ? nullptr : std::get_if<Arrival>(&batch_.front());
      if (arrival != nullptr) core_.AddWakeup(clock_->NowUs() - arrival->arrival_us);
    }
    Acknowledge();
    events_.Drain(&batch_);
    HandleEvents();
    RunStep();
  }
  batch_.clear();
  events_.Drain(&batch_);
  HandleEvents();
  core_.FailAll(Status(StatusCode::kUnavailable, "the engine was shut down"));
  Publish(0, 0);
  core_.Dispatch();
}

void EngineLoop::HandleEvents() {
  EndImpatient();
  if (batch_.empty()) return;
  const TimeUs begin_us = clock_->NowUs();
  int32_t num_arrivals = 0;
  int64_t num_tokens = 0;
  for (Event& event : batch_) {
    if (auto* arrival = std::get_if<Arrival>(&event)) {
      num_arrivals += static_cast<int32_t>(arrival->requests.size());
      num_tokens += NumTokens(arrival->requests);
      NotePatience(*arrival);
      core_.Arrive(arrival->first_id, std::move(arrival->requests), arrival->callback,
                   arrival->arrival_us);
      continue;
    }
    if (const auto* view = std::get_if<ViewRequest>(&event)) {
      AnswerView(*view);
        continue;
      }
    if (const auto* visit = std::get_if<BlockVisit>(&event)) {
      --num_visits_;
      core_.VisitBlocks(visit->visit);
      continue;
    }
    const auto& cancellation = std::get<Cancellation>(event);
    if (cancellation.sample < 0) {
      core_.Cancel(cancellation.id);
    } else {
      core_.CancelSample(cancellation.id, cancellation.sample);
    }
  }
  batch_.clear();
  core_.AddSchedulerTime(clock_->NowUs() - begin_us);
  Publish(num_arrivals, num_tokens);
  core_.Dispatch();
}

void EngineLoop::AnswerView(const ViewRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    --queue_.num_views;
  }
  request.done(core_.View());
}

void EngineLoop::NotePatience(const Arrival& arrival) {
  RequestId id = arrival.first_id;
  for (const Request& request : arrival.requests) {
    const TimeUs bound_us = MaxWaitUs(config_, request);
    if (bound_us > 0) patience_.insert({arrival.arrival_us + 2 * bound_us, id});
    ++id;
  }
  if (patience_.size() < patience_limit_) return;
  std::erase_if(patience_, [this](const Patience& entry) { return !core_.IsQueued(entry.id); });
  patience_limit_ = 2 * patience_.size() + kPatienceEntries;
}

// Ends requests whose clients no longer wait for the answer.
void EngineLoop::EndImpatient() {
  if (patience_.empty()) return;
  const TimeUs now_us = clock_->NowUs();
  while (!patience_.empty() && patience_.begin()->us <= now_us) {
    core_.EndQueued(patience_.begin()->id,
                    Status(StatusCode::kResourceExhausted,
                           "the request has waited too long without being begun"));
    patience_.erase(patience_.begin());
  }
}

void EngineLoop::ObserveRate(uint64_t tokens_before, bool waited, TimeUs busy_us) {
  const auto num_tokens = static_cast<int64_t>(published_stats_.prompt_tokens - tokens_before);
  if (!waited && num_tokens == 0) return;
  const std::lock_guard lock(mutex_);
  queue_.wait.Observe(num_tokens, busy_us);
}

void EngineLoop::RunStep() {
  const TimeUs begin_us = clock_->NowUs();
  const uint64_t tokens_before = published_stats_.prompt_tokens;  // this thread alone writes it
  const bool waited = core_.num_queued() > 0;
  core_.Step(preempt_, [this] {
    if (quit_.load(std::memory_order_relaxed)) return false;  // Run then ends every request
    const TimeUs signal_us = signal_us_.load(std::memory_order_relaxed);
    if (signal_us > 0) core_.AddBlockingTime(signal_us, clock_->NowUs());
    Acknowledge();
    events_.Drain(&batch_);
    HandleEvents();
    return true;
  });
  Publish(0, 0);
  ObserveRate(tokens_before, waited, clock_->NowUs() - begin_us);
  core_.Dispatch();
}

void EngineLoop::Publish(int32_t num_drained, int64_t num_tokens_drained) {
  const EngineStats stats = core_.Stats();
  const std::lock_guard lock(mutex_);
  published_stats_ = stats;
  queue_.num_arriving -= num_drained;
  queue_.tokens_arriving -= num_tokens_drained;
  queue_.tokens = core_.num_queued_tokens();
  queue_.num = static_cast<int32_t>(core_.num_queued());
}

void EngineLoop::NoteEnded(RequestId id) {
  const std::lock_guard lock(mutex_);
  live_.erase(id);
  if (live_.empty()) all_ended_.notify_all();
}

Result<std::unique_ptr<EngineLoop>> MakeEngine(const EngineConfig& config, Executor* executor,
                                               const Clock* clock,
                                               std::vector<SchedulerObserver*> observers) {
  SKEIN_ASSIGN_OR_RETURN(const SchedulerConfig scheduler_config, MakeSchedulerConfig(config));
  const std::pair<const char*, int32_t> limits[] = {
      {"vocab_size", config.vocab_size}, {"max_queued_requests", config.max_queued_requests}};
  for (const auto& [name, value] : limits) {
    if (value >= 1) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} is {}, must be above 0", name, value), name);
  }
  if (config.max_logprobs < 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("max_logprobs is {}, must be at least 0", config.max_logprobs),
                  "max_logprobs");
  }
  if (config.max_wait_us < 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("max_wait_us is {}, must be at least 0", config.max_wait_us),
                  "max_wait_us");
  }
  return std::make_unique<EngineLoop>(config, scheduler_config, executor, clock,
                                      std::move(observers));
}

}  // namespace skein
