#include "apps/bench_preemption.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "apps/load_report.h"
#include "base/check.h"
#include "base/random.h"

namespace skein {
namespace {

using SteadyClock = std::chrono::steady_clock;

double Seconds(SteadyClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A thread that raises a signal some time after it has been asked to.
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
  // When it was raised. REQUIRES: it is.
  SteadyClock::time_point raised_at() const { return raised_at_; }
  // Clears the signal and has it raised again after `delay_s`. REQUIRES: it is raised, or this is
  // the first call.
  void RaiseIn(double delay_s) {
    signal_.store(false);
    {
      const std::lock_guard lock(mutex_);
      due_ = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                      std::chrono::duration<double>(delay_s));
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
      } else if (changed_.wait_until(lock, due_) == std::cv_status::timeout) {
        armed_ = false;
        raised_at_ = SteadyClock::now();
        signal_.store(true);
      }
    }
  }

  std::atomic<bool> signal_{false};
  SteadyClock::time_point raised_at_;  // written before the signal
  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;           // guarded by mutex_
  bool quit_ = false;            // guarded by mutex_
  SteadyClock::time_point due_;  // guarded by mutex_
  std::thread thread_;
};

class PreemptionBench {
 public:
  PreemptionBench(CpuRuntime* runtime, const PreemptionBenchOptions& options)
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

  Result<PreemptionReport> Run() {
    Prefill(Granularity::kNone, nullptr);  // warms up
    expected_ = answer_;
    PreemptionReport report;
    std::vector<double> checked, unchecked;
    for (int32_t i = 0; i < options_.repetitions; ++i) {
      unchecked.push_back(Prefill(Granularity::kNone, nullptr));
      checked.push_back(Prefill(Granularity::kOpTile, nullptr));
    }
    report.checked_s = Median(std::move(checked));
    report.unchecked_s = Median(std::move(unchecked));
    prefill_s_ = report.unchecked_s;
    const std::pair<Granularity, const char*> granularities[] = {{Granularity::kOpTile, "op-tile"},
                                                                 {Granularity::kOp, "op"},
                                                                 {Granularity::kLayer, "layer"},
                                                                 {Granularity::kChunk, "chunk"}};
    for (const auto& [granularity, name] : granularities) {
      SKEIN_ASSIGN_OR_RETURN(BlockingTimes times, Measure(granularity));
      times.granularity = name;
      report.granularities.push_back(std::move(times));
    }
    return report;
  }

 private:
  Result<BlockingTimes> Measure(Granularity granularity) {
    blocking_ms_.clear();
    Signaller signaller;
    signaller.RaiseIn(NextDelay());
    while (std::ssize(blocking_ms_) < options_.count) {
      Prefill(granularity, &signaller);
      if (answer_.token != expected_.token || answer_.chosen.logprob != expected_.chosen.logprob) {
        return Status(StatusCode::kInternal, "a prefill that was stopped gave another answer");
      }
    }
    blocking_ms_.resize(static_cast<size_t>(options_.count));
    std::ranges::sort(blocking_ms_);
    const double sum = std::accumulate(blocking_ms_.begin(), blocking_ms_.end(), 0.0);
    return BlockingTimes{.count = options_.count,
                         .mean_ms = sum / options_.count,
                         .p50_ms = Quantile(blocking_ms_, 0.5),
                         .p99_ms = Quantile(blocking_ms_, 0.99),
                         .max_ms = blocking_ms_.back()};
  }

  double NextDelay() { return 2 * random_.Uniform() * prefill_s_ / options_.per_prefill; }

  // The whole prompt, in one step or at granularity `chunk` in steps; seconds.
  double Prefill(Granularity granularity, Signaller* signaller) {
    runtime_->set_granularity(granularity);
    const auto begin = SteadyClock::now();
    const int32_t n = options_.prompt_tokens;
    const int32_t step = granularity == Granularity::kChunk ? options_.chunk_tokens : n;
    for (int32_t first = 0; first < n; first += step) {
      const int32_t end = std::min(n, first + step);
      PlanRow row = {.begin = first,
                     .tokens = std::span(tokens_).subspan(first, end - first),
                     .block_table = std::span(blocks_).first(BlocksFor(end))};
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
      if (signaller->signal().load()) Acknowledge(signaller);  // the step's end answers it
    }
    const StepResults& results = executor.Results(*task);
    if (!results.draws.empty()) answer_ = results.draws[0].token;
  }

  void Acknowledge(Signaller* signaller) {
    blocking_ms_.push_back(1e3 * Seconds(SteadyClock::now() - signaller->raised_at()));
    signaller->RaiseIn(NextDelay());
  }

  CpuRuntime* const runtime_;
  const PreemptionBenchOptions options_;
  Random random_;
  std::vector<TokenId> tokens_;
  std::vector<BlockId> blocks_;
  GenerateSpec greedy_;
  DrawSpec draw_;
  double prefill_s_ = 0;
  OutputToken answer_, expected_;
  std::vector<double> blocking_ms_;
};

}  // namespace

Result<PreemptionReport> RunPreemptionBench(CpuRuntime* runtime,
                                            const PreemptionBenchOptions& options) {
  return PreemptionBench(runtime, options).Run();
}

}  // namespace skein
