#include "bench/sched/preemption.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "bench/serving/load_report.h"

namespace skein {
namespace {

using SteadyClock = std::chrono::steady_clock;

double Seconds(SteadyClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A thread that raises a signal at a given time.
class Signaller {
 public:
  Signaller() : thread_([this] { Run(); }) {}
  ~Signaller() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const std::atomic<bool>& signal() const { return signal_; }
  // The time at which the signal was raised. It is a little later than the due time, because the
  // thread had to wake up. REQUIRES: the signal is raised.
  SteadyClock::time_point raised_at() const { return raised_at_; }
  // Clears the signal and lets the thread raise it again at `due`. REQUIRES: the signal is raised,
  // or this is the first call.
  void RaiseAt(SteadyClock::time_point due) {
    signal_.store(false);
    {
      const std::lock_guard lock(mutex_);
      due_ = due;
      armed_ = true;
    }
    changed_.notify_all();
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (!quit_) {
      if (!armed_) {
        changed_.wait(lock);
      } else if (SteadyClock::now() >= due_ ||
                 changed_.wait_until(lock, due_) == std::cv_status::timeout) {
        armed_ = false;
        raised_at_ = SteadyClock::now();
        signal_.store(true);
      }
    }
  }

  std::atomic<bool> signal_{false};
  SteadyClock::time_point raised_at_;  // written before the signal is raised
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;           // guarded by mutex_
  bool quit_ = false;            // guarded by mutex_
  SteadyClock::time_point due_;  // guarded by mutex_
  std::thread thread_;
};

constexpr int32_t kWarmUpTokens = 2048;  // of the warm-up's prompt, at most

int32_t PrefillsOf(int32_t count, const PreemptionBenchOptions& options) {
  return (count + options.per_prefill - 1) / options.per_prefill;
}

class PreemptionBench {
 public:
  PreemptionBench(Runtime* runtime, const PreemptionBenchOptions& options)
      : runtime_(runtime), options_(options), random_(options.seed) {
    const int32_t vocab = runtime->config().vocab_size;
    for (int32_t i = 0; i < options.prompt_tokens; ++i) {
      tokens_.push_back(static_cast<TokenId>(random_.Between(0, vocab - 1)));
    }
    blocks_.resize(static_cast<size_t>(BlocksFor(options.prompt_tokens)));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    SKEIN_CHECK(std::ssize(blocks_) <= runtime->num_kv_blocks());
    greedy_.sampling.temperature = 0;
    greedy_.num_logprobs = 0;
    draw_ = {.generate = &greedy_, .history = tokens_, .prompt_len = options.prompt_tokens};
  }

  Result<PreemptionReport> Run(const std::function<void(double)>& estimate) {
    WarmUp();
    PreemptionReport report;
    std::vector<double> checked, unchecked;
    for (int32_t i = 0; i < options_.repetitions; ++i) {
      unchecked.push_back(Prefill(Granularity::kNone, nullptr));
      if (i == 0) estimate(NumPrefills(options_) * unchecked[0]);
      expected_ = answer_;
      checked.push_back(Prefill(Granularity::kOpTile, nullptr));
    }
    report.checked_s = Median(std::move(checked));
    report.unchecked_s = Median(std::move(unchecked));
    prefill_s_ = report.unchecked_s;
    struct Case {
      Granularity granularity;
      const char* name;
      int32_t count;
    };
    const Case cases[] = {{Granularity::kOpTile, "op-tile", options_.count},
                          {Granularity::kOp, "op", options_.count},
                          {Granularity::kLayer, "layer", options_.count},
                          {Granularity::kChunk, "chunk", options_.chunk_count}};
    for (const Case& c : cases) {
      if (options_.count == 0) break;
      SKEIN_ASSIGN_OR_RETURN(BlockingTimes times, Measure(c.granularity, c.count));
      times.granularity = c.name;
      report.granularities.push_back(std::move(times));
    }
    return report;
  }

 private:
  Result<BlockingTimes> Measure(Granularity granularity, int32_t count) {
    blocking_ms_.clear();
    wake_ms_.clear();
    count_ = count;
    Signaller signaller;
    moment_ = After(SteadyClock::now());
    signaller.RaiseAt(moment_);
    while (std::ssize(blocking_ms_) < count) {
      Prefill(granularity, &signaller);
      if (answer_.token != expected_.token || answer_.chosen.logprob != expected_.chosen.logprob) {
        return Status(StatusCode::kInternal, "a prefill that was stopped gave another answer");
      }
    }
    std::ranges::sort(blocking_ms_);
    std::ranges::sort(wake_ms_);
    const auto mean = [](const std::vector<double>& values) {
      return std::accumulate(values.begin(), values.end(), 0.0) / std::ssize(values);
    };
    return BlockingTimes{.count = count,
                         .stops = static_cast<int32_t>(wake_ms_.size()),
                         .mean_ms = mean(blocking_ms_),
                         .p50_ms = Quantile(blocking_ms_, 0.5),
                         .p99_ms = Quantile(blocking_ms_, 0.99),
                         .max_ms = blocking_ms_.back(),
                         .wake_mean_ms = mean(wake_ms_),
                         .wake_p99_ms = Quantile(wake_ms_, 0.99)};
  }

  // The next time in the Poisson process after `moment`.
  SteadyClock::time_point After(SteadyClock::time_point moment) {
    const double gap_s = -std::log1p(-random_.Uniform()) * prefill_s_ / options_.per_prefill;
    return moment +
           std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(gap_s));
  }

  void WarmUp() {
    const auto tokens = std::span(tokens_).first(
        static_cast<size_t>(std::min(options_.prompt_tokens, kWarmUpTokens)));
    runtime_->set_granularity(Granularity::kNone);
    RunStep(MixedPlan{.prefills = {{.tokens = tokens,
                                    .block_table = std::span(blocks_).first(
                                        static_cast<size_t>(BlocksFor(std::ssize(tokens))))}}},
            nullptr);
  }

  // Computes the whole prompt, in one step or, at granularity `chunk`, in several. Returns the
  // seconds.
  double Prefill(Granularity granularity, Signaller* signaller) {
    runtime_->set_granularity(granularity);
    const auto begin = SteadyClock::now();
    const int32_t n = options_.prompt_tokens;
    const int32_t step = granularity == Granularity::kChunk ? options_.chunk_tokens : n;
    for (int32_t first = 0; first < n; first += step) {
      const int32_t end = std::min(n, first + step);
      PlanRow row = {.begin = first,
                     .tokens = std::span(tokens_).subspan(first, end - first),
                     .block_table = std::span(blocks_).first(BlocksFor(end)),
                     .state = OwnState(runtime_->executor(), 0, first)};
      if (end == n) row.draws = {&draw_, 1};
      RunStep(MixedPlan{.prefills = {row}}, signaller);
    }
    return Seconds(SteadyClock::now() - begin);
  }

  void RunStep(const StepPlan& plan, Signaller* signaller) {
    static const std::atomic<bool> kNever{false};
    Executor& executor = runtime_->executor();
    const std::unique_ptr<Task> task = executor.Begin(plan);
    if (signaller == nullptr) {
      SKEIN_CHECK(executor.Resume(*task, kNever) == TaskStatus::kDone);
    } else {
      while (executor.Resume(*task, signaller->signal()) == TaskStatus::kPreempted) {
        Acknowledge(signaller);
      }
      // The end of the step is a standstill, too.
      if (signaller->signal().load()) Acknowledge(signaller);
    }
    const StepResults& results = executor.Results(*task);
    if (!results.draws.empty()) answer_ = results.draws[0].token;
  }

  // Records the waiting time of the signal. Also records those of later times of the process that
  // passed while the signal was raised, since they waited for the same standstill. Times before the
  // thread had woken up do not count. The next time then raises the signal.
  void Acknowledge(Signaller* signaller) {
    const auto now = SteadyClock::now();
    const auto count_from = [&](SteadyClock::time_point moment) {
      if (std::ssize(blocking_ms_) < count_) blocking_ms_.push_back(1e3 * Seconds(now - moment));
    };
    wake_ms_.push_back(1e3 * Seconds(signaller->raised_at() - moment_));
    count_from(signaller->raised_at());
    for (; moment_ <= now; moment_ = After(moment_)) {
      if (moment_ > signaller->raised_at()) count_from(moment_);
    }
    // Once all signals are counted, the rest of the prefill runs undisturbed.
    signaller->RaiseAt(std::ssize(blocking_ms_) < count_ ? moment_
                                                         : SteadyClock::time_point::max());
  }

  Runtime* const runtime_;
  const PreemptionBenchOptions options_;
  Random random_;
  std::vector<TokenId> tokens_;
  std::vector<BlockId> blocks_;
  GenerateSpec greedy_;
  DrawSpec draw_;
  double prefill_s_ = 0;
  OutputToken answer_, expected_;
  SteadyClock::time_point moment_;   // the next time of the process that has not been counted
  std::vector<double> blocking_ms_;  // of each signal
  std::vector<double> wake_ms_;      // of each stop
  int32_t count_ = 0;
};

}  // namespace

int32_t NumPrefills(const PreemptionBenchOptions& options) {
  const int32_t undisturbed = 2 * options.repetitions;
  if (options.count == 0) return undisturbed;
  return undisturbed + 3 * PrefillsOf(options.count, options) +
         PrefillsOf(options.chunk_count, options);
}

Result<PreemptionReport> RunPreemptionBench(Runtime* runtime, const PreemptionBenchOptions& options,
                                            const std::function<void(double)>& estimate) {
  return PreemptionBench(runtime, options).Run(estimate);
}

nlohmann::ordered_json PreemptionToJson(const PreemptionBenchOptions& options,
                                        const PreemptionReport& report) {
  nlohmann::ordered_json json;
  json["prompt_tokens"] = options.prompt_tokens;
  json["chunk_tokens"] = options.chunk_tokens;
  json["count"] = options.count;
  json["chunk_count"] = options.chunk_count;
  json["checked_tokens_per_s"] = options.prompt_tokens / report.checked_s;
  json["unchecked_tokens_per_s"] = options.prompt_tokens / report.unchecked_s;
  json["lost"] = 1 - report.unchecked_s / report.checked_s;
  json["granularities"] = nlohmann::ordered_json::array();
  for (const BlockingTimes& times : report.granularities) {
    json["granularities"].push_back({{"granularity", times.granularity},
                                     {"count", times.count},
                                     {"stops", times.stops},
                                     {"mean_ms", times.mean_ms},
                                     {"p50_ms", times.p50_ms},
                                     {"p99_ms", times.p99_ms},
                                     {"max_ms", times.max_ms},
                                     {"wake_mean_ms", times.wake_mean_ms},
                                     {"wake_p99_ms", times.wake_p99_ms}});
  }
  return json;
}

}  // namespace skein
