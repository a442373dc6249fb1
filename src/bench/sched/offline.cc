#include "bench/sched/offline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "apps/sim/workload.h"
#include "base/check.h"
#include "base/random.h"

namespace skein {
namespace {

// KV use is checked when something happens, and at least this often.
constexpr TimeUs kPollUs = 5'000;
// If cancelled requests take longer to end, the run is given up.
constexpr TimeUs kCancelGraceUs = 10'000'000;

// A random number of the range.
int32_t Drawn(const IntRange& range, Random* random) {
  return static_cast<int32_t>(random->Between(range.low, range.high));
}

// Generates tokens that are ordinary tokens of the tokenizer.
std::vector<TokenId> GeneratePrompt(const Scenario& scenario, size_t kind, int64_t index,
                                    int32_t num_tokens, const Tokenizer& tokenizer, int32_t vocab) {
  const std::string name = fmt::format("{}/{}/{}", scenario.seed, scenario.name, kind);
  const int32_t num_shared = scenario.requests[kind].shared_prefix_tokens;
  std::vector<TokenId> ids;
  ExpandSegment(name, num_shared, {.vocab = vocab, .min_id = 0}, &ids);
  ExpandSegment(fmt::format("{}/{}", name, index), num_tokens - num_shared,
                {.vocab = vocab, .min_id = 0}, &ids);
  for (TokenId& id : ids) {
    for (int32_t step = 0; step < vocab && tokenizer.IsSpecial(id); ++step) id = (id + 1) % vocab;
  }
  return ids;
}

void SetArrivals(const Scenario& scenario, Random* random, ScenarioPlan* plan) {
  const ArrivalPattern& arrival = scenario.arrival;
  double now_s = 0;
  for (size_t i = 0; i < plan->requests.size(); ++i) {
    if (arrival.kind == ArrivalPattern::Kind::kPoisson) {
      now_s += -std::log(1 - random->Uniform()) / arrival.rate_per_s;
    } else if (arrival.kind == ArrivalPattern::Kind::kBursts && arrival.size > 0 && i > 0 &&
               i % static_cast<size_t>(arrival.size) == 0) {
      now_s += arrival.interval_s;
    }
    plan->requests[i].arrival_us = std::llround(now_s * 1e6);
  }
}

struct Live {
  LoadRecord record;
  RequestId id = 0;
  TimeUs start_us = 0;
  TimeUs last_us = 0;
  bool submitted = false;
  bool done = false;
};

// State that the engine's thread and the runner share. It outlives the run if a callback does.
struct OfflineRun {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Live> live;  // [number of requests]
  size_t num_running = 0;
  uint64_t num_outputs = 0;
};

// Runs on the engine's thread: records when a piece came and what it held.
void TakeOutput(OfflineRun& shared, size_t index, const RequestOutput& output, TimeUs now_us) {
  std::lock_guard<std::mutex> lock(shared.mutex);
  Live& live = shared.live[index];
  LoadRecord& record = live.record;
  if (!output.tokens.empty()) {
    if (record.output_tokens == 0) {
      record.ttft_us = now_us - live.start_us;
    } else {
      record.itl_us.push_back(now_us - live.last_us);
    }
    record.output_tokens += static_cast<int64_t>(output.tokens.size());
    live.last_us = now_us;
  }
  record.cached_tokens = std::max<int64_t>(record.cached_tokens, output.cached_tokens);
  if (output.finish && !live.done) {
    record.ok = *output.finish == FinishReason::kStop || *output.finish == FinishReason::kLength;
    if (*output.finish == FinishReason::kCancelled) record.error = "cancelled at the time limit";
    if (*output.finish == FinishReason::kError) record.error = output.status.message();
    record.e2el_us = now_us - live.start_us;
    live.done = true;
    --shared.num_running;
  }
  ++shared.num_outputs;
  shared.changed.notify_one();
}

class ScenarioRun {
 public:
  ScenarioRun(Engine& engine, const Scenario& scenario, const Clock& clock, ScenarioPlan plan)
      : engine_(engine), scenario_(scenario), clock_(clock), plan_(std::move(plan)) {
    shared_->live.resize(plan_.requests.size());
    for (size_t i = 0; i < plan_.requests.size(); ++i) {
      LoadRecord& record = shared_->live[i].record;
      record.request_class = plan_.requests[i].request_class;
      record.prompt_tokens = static_cast<int64_t>(plan_.requests[i].request.prompt.size());
    }
  }

  // Returns false if cancelled requests did not end.
  bool Run() {
    start_us_ = clock_.NowUs();
    const TimeUs limit_us =
        start_us_ + static_cast<TimeUs>(std::llround(scenario_.time_limit_s * 1e6));
    while (next_ < plan_.requests.size() || num_running() > 0) {
      if (clock_.NowUs() >= limit_us) return CancelAll();
      const uint64_t num_outputs = NumOutputs();
      SubmitDue();
      WatchKv();
      if (num_running() > 0 || !closed()) Wait(num_outputs, limit_us);
    }
    WatchKv();
    return true;
  }

  int32_t peak_kv_blocks() const { return peak_kv_blocks_; }
  TimeUs start_us() const { return start_us_; }

  std::vector<LoadRecord> TakeRecords() {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    std::vector<LoadRecord> records;
    for (Live& live : shared_->live) {
      if (!live.submitted) live.record.error = "not submitted before the time limit";
      records.push_back(std::move(live.record));
    }
    return records;
  }

 private:
  bool closed() const { return scenario_.arrival.kind == ArrivalPattern::Kind::kClosed; }

  size_t num_running() const {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    return shared_->num_running;
  }

  uint64_t NumOutputs() const {
    std::lock_guard<std::mutex> lock(shared_->mutex);
    return shared_->num_outputs;
  }

  bool NextIsDue() const {
    if (next_ == plan_.requests.size()) return false;
    if (closed()) return num_running() < static_cast<size_t>(scenario_.arrival.concurrency);
    return start_us_ + plan_.requests[next_].arrival_us <= clock_.NowUs();
  }

  void SubmitDue() {
    while (NextIsDue()) {
      const size_t index = next_++;
      PlannedRequest& planned = plan_.requests[index];
      {
        std::lock_guard<std::mutex> lock(shared_->mutex);
        Live& live = shared_->live[index];
        live.start_us = closed() ? clock_.NowUs() : start_us_ + planned.arrival_us;
        live.submitted = true;
        ++shared_->num_running;
      }
      // The lock is not held, since an engine may answer before the call returns.
      RequestId id = 0;
      const Status status = engine_.Submit(
          std::move(planned.request),
          [shared = shared_, index, clock = &clock_](const RequestOutput& output) {
            TakeOutput(*shared, index, output, clock->NowUs());
          },
          &id);
      std::lock_guard<std::mutex> lock(shared_->mutex);
      Live& live = shared_->live[index];
      live.id = id;
      if (!status.ok()) {
        live.record.error = status.message();
        live.done = true;
        --shared_->num_running;
      }
    }
  }

  void WatchKv() { peak_kv_blocks_ = std::max(peak_kv_blocks_, engine_.Stats().kv_blocks_used); }

  // Waits until there are more than `num_outputs` outputs, the next request is due, or the KV use
  // must be checked.
  void Wait(uint64_t num_outputs, TimeUs limit_us) {
    const TimeUs now_us = clock_.NowUs();
    TimeUs until_us = std::min(limit_us, now_us + kPollUs);
    if (!closed() && next_ < plan_.requests.size()) {
      until_us = std::min(until_us, start_us_ + plan_.requests[next_].arrival_us);
    }
    std::unique_lock<std::mutex> lock(shared_->mutex);
    shared_->changed.wait_for(lock, std::chrono::microseconds(until_us - now_us),
                              [&] { return shared_->num_outputs != num_outputs; });
  }

  bool CancelAll() {
    std::vector<RequestId> running;
    {
      std::lock_guard<std::mutex> lock(shared_->mutex);
      for (const Live& live : shared_->live) {
        if (live.submitted && !live.done) running.push_back(live.id);
      }
    }
    for (const RequestId id : running) engine_.Cancel(id);
    std::unique_lock<std::mutex> lock(shared_->mutex);
    return shared_->changed.wait_for(lock, std::chrono::microseconds(kCancelGraceUs),
                                     [this] { return shared_->num_running == 0; });
  }

  Engine& engine_;
  const Scenario& scenario_;
  const Clock& clock_;
  ScenarioPlan plan_;
  std::shared_ptr<OfflineRun> shared_ = std::make_shared<OfflineRun>();
  size_t next_ = 0;  // index in plan_.requests of the next request to submit
  TimeUs start_us_ = 0;
  int32_t peak_kv_blocks_ = 0;
};

EngineFigures MakeEngineFigures(const EngineStats& before, const EngineStats& after,
                                const LoadReport& report, int64_t peak_kv_bytes) {
  EngineFigures figures;
  const auto seconds = [](uint64_t us) { return static_cast<double>(us) / 1e6; };
  figures.prefill_time_s = seconds(after.prefill_us - before.prefill_us);
  figures.decode_time_s = seconds(after.decode_us - before.decode_us);
  figures.mixed_time_s = seconds(after.mixed_us - before.mixed_us);
  const double computed = static_cast<double>(after.prompt_tokens - before.prompt_tokens) -
                          static_cast<double>(after.prefix_cache_hits - before.prefix_cache_hits);
  const double prefill_s = figures.prefill_time_s + figures.mixed_time_s;
  if (prefill_s > 0) figures.prefill_throughput = computed / prefill_s;
  const double decode_s = figures.decode_time_s + figures.mixed_time_s;
  const auto decoded = report.total.output_tokens - report.total.completed;
  if (decode_s > 0) {
    figures.decode_throughput = static_cast<double>(std::max<int64_t>(decoded, 0)) / decode_s;
  }
  figures.peak_kv_bytes = peak_kv_bytes;
  figures.wasted_decode_slots =
      static_cast<int64_t>(after.wasted_decode_slots - before.wasted_decode_slots);
  figures.num_preemptions = static_cast<int64_t>(after.num_preemptions - before.num_preemptions);
  figures.steps = static_cast<int64_t>((after.steps_oneshot - before.steps_oneshot) +
                                       (after.steps_mixed - before.steps_mixed) +
                                       (after.steps_decode - before.steps_decode));
  return figures;
}

}  // namespace

Result<ScenarioPlan> PlanScenario(const Scenario& scenario, const Tokenizer& tokenizer,
                                  const EngineLimits& limits) {
  SKEIN_CHECK(limits.max_model_len >= 2);
  const int32_t vocab = std::min(limits.vocab_size, tokenizer.vocab_size());
  Random random(scenario.seed);
  ScenarioPlan plan;
  std::vector<int32_t> taken(scenario.requests.size(), 0);
  bool any = true;
  while (any) {
    any = false;
    for (size_t kind = 0; kind < scenario.requests.size(); ++kind) {
      const ScenarioRequests& requests = scenario.requests[kind];
      if (taken[kind] == requests.count) continue;
      any = true;
      const int32_t index = taken[kind]++;
      PlannedRequest planned;
      planned.request_class = requests.request_class;
      auto& generate = planned.request.generate();
      auto& prompt = planned.request.prompt;
      generate.max_tokens = Drawn(requests.max_tokens, &random);
      generate.sampling = requests.sampling;
      generate.sampling.seed += static_cast<uint64_t>(index);
      if (!requests.ignore_eos && tokenizer.eos_id()) {
        generate.stop_token_ids = {*tokenizer.eos_id()};
      }
      if (requests.prompt.empty()) {
        const int32_t num_tokens = Drawn(requests.prompt_tokens, &random);
        prompt = GeneratePrompt(scenario, kind, index, num_tokens, tokenizer, vocab);
      } else {
        SKEIN_RETURN_IF_ERROR(
            tokenizer.Encode(requests.prompt, /*add_special_tokens=*/true, &prompt));
      }
      // For a model with a short context, the prompt is shortened first, then the output.
      const int32_t room = limits.max_model_len;
      const int32_t max_output = std::min(generate.max_tokens, room - 1);
      const auto max_prompt = static_cast<size_t>(std::max(room - max_output, 1));
      if (prompt.size() > max_prompt || max_output < generate.max_tokens) ++plan.num_clipped;
      if (prompt.size() > max_prompt) prompt.resize(max_prompt);
      generate.max_tokens = max_output;
      plan.requests.push_back(std::move(planned));
    }
  }
  SetArrivals(scenario, &random, &plan);
  return plan;
}

Result<ScenarioOutcome> RunScenario(Engine& engine, const Tokenizer& tokenizer,
                                    const Scenario& scenario, const Clock& clock,
                                    int64_t kv_block_bytes) {
  SKEIN_ASSIGN_OR_RETURN(ScenarioPlan plan, PlanScenario(scenario, tokenizer, engine.Limits()));
  ScenarioOutcome outcome;
  outcome.num_clipped = plan.num_clipped;
  const EngineStats before = engine.Stats();
  ScenarioRun run(engine, scenario, clock, std::move(plan));
  if (!run.Run()) {
    return Status(StatusCode::kInternal,
                  "scenario " + scenario.name + ": cancelled requests did not end within 10 s");
  }
  const TimeUs duration_us = clock.NowUs() - run.start_us();
  const EngineStats after = engine.Stats();
  outcome.report = MakeLoadReport(run.TakeRecords(), duration_us, {});
  outcome.report.engine =
      MakeEngineFigures(before, after, outcome.report, run.peak_kv_blocks() * kv_block_bytes);
  return outcome;
}

}  // namespace skein
