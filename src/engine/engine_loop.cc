#include "engine/engine_loop.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/memory_reserve.h"
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

// The bound of a step with prompts and decodes, if waiting is bounded. The answer of an accepted
// request must not take much longer than the request waited.
constexpr TimeUs kMixedStepUs = 100'000;

// Clients that wait for each answer before their next request never leave the engine alone so long:
// the profile stops none of their requests.
constexpr auto kQuiet = std::chrono::milliseconds(100);

constexpr auto kMemoryPause = std::chrono::milliseconds(1);

// The tokens of the prompts that were computed.
ClassTokens PromptTokens(const EngineStats& stats) {
  const auto decode = static_cast<int64_t>(stats.decode_prompt_tokens);
  return {.oneshot = static_cast<int64_t>(stats.prompt_tokens) - decode, .decode = decode};
}

// The estimate of a prompt token's time before any measurement, from the profile of the device.
double UsPerToken(const CostFit& fit) {
  constexpr int64_t kTokens = 256;
  return fit == CostFit{} ? 0 : PredictUs(fit, WorkOf(kTokens, 0)) / kTokens;
}

}  // namespace

EngineLoop::EngineLoop(const EngineConfig& config, const SchedulerConfig& scheduler_config,
                       Executor* executor, const Clock* clock,
                       std::vector<SchedulerObserver*> observers,
                       std::unique_ptr<IdleProfile> profile)
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
            [this](RequestId id) { NoteEnded(id); }),
      profile_(std::move(profile)),
      waits_{.estimate =
                 WaitEstimate(UsPerToken(scheduler_config.cost), scheduler_config.max_num_seqs)},
      queue_(config_, scheduler_config_) {
  if (config.max_wait_us > 0) core_.set_mixed_step_us(kMixedStepUs);
  core_.set_max_wait_us(config.max_wait_us);
  core_.set_runs(&waits_.estimate);
  queue_.Publish({}, {}, waits_.estimate);
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

Status EngineLoop::CheckWait(const Request& request, int64_t max_prompt_len) {
  // Submit says what is wrong with such a request.
  if (request.generates() && !ValidateRequest(limits_, request).ok()) return Status::Ok();
  const ReserveScope scope;
  const std::lock_guard lock(mutex_);
  if (!accepting_ || MemoryReserve::IsShort()) return Status::Ok();
  return queue_.CheckWithoutPrompt(request, max_prompt_len, clock_->NowUs());
}

Status EngineLoop::Enqueue(std::vector<Request> requests, OutputCallback callback,
                           std::vector<RequestId>* ids) {
  const ReserveScope scope;
  const std::lock_guard lock(mutex_);
  if (!accepting_) {
    return {StatusCode::kUnavailable, "the engine is shutting down and takes no more requests"};
  }
  if (MemoryReserve::IsShort()) return NoMemory();
  SKEIN_RETURN_IF_ERROR(queue_.Check(requests, clock_->NowUs()));
  const auto count = static_cast<int32_t>(requests.size());
  ids->clear();
  if (requests.empty()) return Status::Ok();
  const RequestId first_id = next_id_;
  const uint64_t group = count > 1 ? next_group_++ : 0;
  const QueuedWork work = {count, TokensOf(scheduler_config_, requests)};
  try {
    ids->reserve(requests.size());
    for (Request& request : requests) {
      request.group.id = group;
      live_[next_id_].num_samples = NumSamples(request);
      ids->push_back(next_id_++);
    }
    SKEIN_CHECK(events_.TryPush(
        Arrival{first_id, std::move(requests), std::move(callback), clock_->NowUs(), work}));
  } catch (const std::bad_alloc&) {
    live_.erase(live_.lower_bound(first_id), live_.end());
    ids->clear();
    return NoMemory();
  }
  queue_.NoteAccepted(work);
  RaiseSignal();
  return Status::Ok();
}

void EngineLoop::Cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end() || found->second.cancelled) return;
  try {
    PushCancellation(id, -1);
    found->second.cancelled = true;
  } catch (const std::bad_alloc&) {  // it runs to its end
  }
}

void EngineLoop::CancelSample(RequestId id, int32_t sample) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end() || sample < 0 || sample >= found->second.num_samples) return;
  try {
    if (found->second.cancelled_samples.insert(sample).second) PushCancellation(id, sample);
  } catch (const std::bad_alloc&) {  // it runs to its end
  }
}

void EngineLoop::PushCancellation(RequestId id, int32_t sample) {
  const ReserveScope scope;
  // The queue refuses events only after Close, and then everything ends anyway.
  SKEIN_CHECK(events_.TryPush(Cancellation{id, sample}) || !accepting_);
  RaiseSignal();
}

bool EngineLoop::VisitBlocks(std::function<void(BlockManager*)> visit) {
  const ReserveScope scope;
  try {
    if (++num_visits_ <= kMaxVisits && events_.TryPush(BlockVisit{std::move(visit)})) {
      RaiseSignal();
      return true;
    }
  } catch (const std::bad_alloc&) {
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
  stats.num_requests_waiting += queue_.num_arriving();
  stats.calls_refused = queue_.num_refused();
  stats.calls_refused_early = queue_.num_refused_without_prompt();
  return stats;
}

Status EngineLoop::View(std::function<void(EngineView)> done) {
  const std::lock_guard lock(mutex_);
  if (num_views_ == kViewRequestsMax) {
    return {StatusCode::kResourceExhausted, "too many wait for a view of the scheduler"};
  }
  if (!events_.TryPush(ViewRequest{std::move(done)})) {
    return {StatusCode::kUnavailable, "the engine was shut down"};
  }
  ++num_views_;
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
  const ReserveScope scope;
  for (bool open = true; open && !quit_.load(std::memory_order_relaxed);) {
    try {
      open = RunRound();
    } catch (const std::bad_alloc&) {
      Recover();
    }
  }
  for (bool ended = false; !ended;) {
    try {
      events_.Drain(&batch_.events);
      HandleEvents();
      core_.FailAll(Status(StatusCode::kUnavailable, "the engine was shut down"));
      Publish();
      core_.Dispatch();
      ended = true;
    } catch (const std::bad_alloc&) {
      Recover();
    }
  }
}

bool EngineLoop::RunRound() {
  if (batch_.events.empty() && core_.empty()) {
    const bool slept = !ProfileWhileIdle();
    if (!events_.WaitAndDrain(&batch_.events)) return false;
    const auto* arrival =
        batch_.events.empty() ? nullptr : std::get_if<Arrival>(&batch_.events.front());
    if (arrival != nullptr && slept) core_.AddWakeup(clock_->NowUs() - arrival->arrival_us);
  }
  Acknowledge();
  events_.Drain(&batch_.events);
  HandleEvents();
  SaveMemory();
  RunStep();
  return true;
}

// Takes the profile until an event comes. Returns whether one came while a step was measured.
bool EngineLoop::ProfileWhileIdle() {
  if (profile_ == nullptr || events_.WaitFor(kQuiet)) return false;
  try {
    bool is_free = true;
    core_.VisitBlocks([&](BlockManager* blocks) {
      // The next step still copies blocks, which may be free by now, to the host.
      is_free = blocks->host_copies().empty();
      if (is_free) profile_->UseFreeMemory(blocks);
    });
    if (!is_free) return false;
    while (!profile_->done()) {
      Acknowledge();  // before the look at the queue: a later event stops the step
      if (events_.WaitFor(std::chrono::microseconds(0))) return true;
      profile_->Measure(preempt_);
    }
    core_.AdoptProfile(profile_->Costs(), profile_->DecodeCosts());
  } catch (const std::bad_alloc&) {  // the costs that are known must do
  }
  profile_ = nullptr;
  return false;
}

void EngineLoop::HandleEvents() {
  waits_.late.End(waits_.estimate, clock_->NowUs(), &core_);
  if (batch_.events.empty()) return;
  const TimeUs begin_us = clock_->NowUs();
  while (batch_.next < batch_.events.size()) {
    batch_.at_hand = &batch_.events[batch_.next++];
    Handle(batch_.at_hand);
    batch_.at_hand = nullptr;
  }
  batch_.ForgetHandled();
  core_.AddSchedulerTime(clock_->NowUs() - begin_us);
  Publish();
  core_.Dispatch();
}

void EngineLoop::Handle(Event* event) {
  if (auto* arrival = std::get_if<Arrival>(event)) {
    batch_.arrived += arrival->work;
    NoteLimits(*arrival);
    core_.Arrive(arrival->first_id, arrival->requests, arrival->callback, arrival->arrival_us);
  } else if (const auto* view = std::get_if<ViewRequest>(event)) {
    AnswerView(*view);
  } else if (const auto* visit = std::get_if<BlockVisit>(event)) {
    --num_visits_;
    core_.VisitBlocks(visit->visit);
  } else {
    const auto& cancellation = std::get<Cancellation>(*event);
    if (cancellation.sample < 0) {
      core_.Cancel(cancellation.id);
    } else {
      core_.CancelSample(cancellation.id, cancellation.sample);
    }
  }
}

void EngineLoop::AnswerView(const ViewRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    --num_views_;
  }
  EngineView view;
  try {
    view = core_.View();
  } catch (const std::bad_alloc&) {
    view = {};
  }
  request.done(std::move(view));
}

// A round that found no memory may have left half of its work behind: every request ends. The event
// at hand has been handled in part, and is given up.
void EngineLoop::Recover() {
  const Status status = NoMemory();
  const Event* at_hand = std::exchange(batch_.at_hand, nullptr);
  const auto* arrival = at_hand != nullptr ? std::get_if<Arrival>(at_hand) : nullptr;
  if (arrival != nullptr) FailArrival(*arrival, status);
  batch_.ForgetHandled();
  core_.EndAll(status);
  waits_.late.Clear();
  while (true) {
    try {
      core_.Begin();
      Publish();
      return;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kMemoryPause);  // until others have given memory back
    }
  }
}

// Ends those of its requests that the core does not know.
void EngineLoop::FailArrival(const Arrival& arrival, const Status& status) {
  RequestId id = arrival.first_id;
  for (size_t i = 0; i < arrival.requests.size(); ++i, ++id) {
    if (core_.Knows(id)) continue;
    int32_t num_samples = 0;
    {
      const std::lock_guard lock(mutex_);
      num_samples = live_.at(id).num_samples;
    }
    for (int32_t sample = 0; sample < num_samples; ++sample) {
      try {
        arrival.callback(
            {.request = id, .sample = sample, .finish = FinishReason::kError, .status = status});
      } catch (const std::bad_alloc&) {  // it cannot be told
      }
    }
    NoteEnded(id);
  }
}

// Once half of the reserve is used, what has not begun ends, so that the rest suffices for what
// runs.
void EngineLoop::SaveMemory() {
  if (core_.num_queued() == 0 || !MemoryReserve::IsShort()) return;
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    ids.reserve(live_.size());
    for (const auto& [id, request] : live_) ids.push_back(id);
  }
  for (const RequestId id : ids) core_.EndQueued(id, NoMemory());
  Publish();
  core_.Dispatch();
}

void EngineLoop::NoteLimits(const Arrival& arrival) {
  waits_.limits.clear();
  for (const Request& request : arrival.requests) {
    waits_.limits.push_back(queue_.rules().LimitsOf(request, waits_.estimate));
  }
  waits_.late.Note(arrival.first_id, arrival.arrival_us, waits_.limits);
}

QueuedWork EngineLoop::Queued() const {
  return {.num_requests = static_cast<int32_t>(core_.num_queued()),
          .tokens = {.oneshot = core_.num_queued_tokens(ExecutionClass::kOneShot),
                     .decode = core_.num_queued_tokens(ExecutionClass::kDecode),
                     .budget = core_.queued_budget()}};
}

void EngineLoop::RunStep() {
  const TimeUs begin_us = clock_->NowUs();
  const ClassTokens before = PromptTokens(published_stats_);  // this thread alone writes them
  const ClassTokens waiting = Queued().tokens;
  core_.Step(preempt_, [this] {
    if (quit_.load(std::memory_order_relaxed)) return false;  // Run then ends every request
    const TimeUs signal_us = signal_us_.load(std::memory_order_relaxed);
    if (signal_us > 0) core_.AddBlockingTime(signal_us, clock_->NowUs());
    Acknowledge();
    events_.Drain(&batch_.events);
    HandleEvents();
    return true;
  });
  ClassTokens done = PromptTokens(core_.Stats());
  done -= before;
  waits_.estimate.Observe(done, waiting, clock_->NowUs() - begin_us);
  Publish();
  core_.Dispatch();
}

void EngineLoop::Publish() {
  const EngineStats stats = core_.Stats();
  const std::lock_guard lock(mutex_);
  published_stats_ = stats;
  queue_.Publish(std::exchange(batch_.arrived, {}), Queued(), waits_.estimate);
}

void EngineLoop::NoteEnded(RequestId id) {
  const std::lock_guard lock(mutex_);
  live_.erase(id);
  if (live_.empty()) all_ended_.notify_all();
}

Result<std::unique_ptr<EngineLoop>> MakeEngine(const EngineConfig& config, Executor* executor,
                                               const Clock* clock,
                                               std::vector<SchedulerObserver*> observers,
                                               std::unique_ptr<IdleProfile> profile) {
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
                                      std::move(observers), std::move(profile));
}

}  // namespace skein
