#pragma once

// Orders of waiting requests against the papers' literal scans of the queue: prompts made of
// blocks, the prefix cache by its definition, and a random load.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "sched/scheduler.h"

namespace skein::testing {

// A prompt whose blocks are letters, and `tail` further tokens.
struct Letters {
  std::string blocks;
  int32_t tail = 0;

  int32_t length() const { return static_cast<int32_t>(blocks.size()) * kBlockTokens + tail; }
};

inline Request MakeRequest(const Letters& letters) {
  Request request;
  for (const char letter : letters.blocks) {
    request.prompt.insert(request.prompt.end(), kBlockTokens, letter);
  }
  request.prompt.insert(request.prompt.end(), letters.tail, 1);
  request.generate().max_tokens = 1;
  return request;
}

inline std::string Repeated(int count, char letter) { return std::string(count, letter); }

// Steps the scheduler; the requests of the step, none when there was nothing to do.
inline std::vector<RequestId> RunStep(Scheduler* scheduler, TimeUs* now_us, TimeUs duration_us) {
  const StepPlan* plan = scheduler->Plan(*now_us);
  scheduler->CheckIntegrity();
  *now_us += duration_us;
  std::vector<RequestId> ids;
  if (plan == nullptr) return ids;
  const auto* oneshot = std::get_if<OneShotPlan>(plan);
  const auto& rows = oneshot != nullptr ? oneshot->rows : std::get<MixedPlan>(*plan).prefills;
  StepResults results;
  for (const PlanRow& row : rows) {
    ids.push_back(RequestOf(row.sequence));
    results.draws.resize(results.draws.size() + row.draws.size());
  }
  scheduler->Complete(&results, *now_us);
  scheduler->TakeOutputs();
  scheduler->CheckIntegrity();
  return ids;
}

// The prefix cache by its definition: what was released last is evicted last, and of one sequence
// the last block first. Blocks are named by all letters up to their end. A prompt holds blocks for
// all of it, or under retention `prefix` as many of its full blocks, from the first, as there are.
// Blocks that the prompts of a step hold are not evicted, and new ones are found when it ends.
class ReferenceCache {
 public:
  // REQUIRES: retention is kAll or kPrefix.
  ReferenceCache(size_t num_blocks, Retention retention)
      : num_blocks_(num_blocks), keeps_all_(retention == Retention::kAll) {}

  int32_t NumCached(const Letters& letters) const {
    const int32_t most = (letters.length() - 1) / kBlockTokens;
    int32_t count = 0;
    while (count < most && Has(letters.blocks.substr(0, count + 1))) ++count;
    return count;
  }

  // Each named by all letters up to its end. REQUIRES: no step is being run.
  const std::list<std::string>& blocks() const { return cached_; }

  // The next prompt of a step. REQUIRES: there is room for all of it where all is kept.
  void Admit(const Letters& letters) {
    const auto num_cached = static_cast<size_t>(NumCached(letters));
    for (size_t i = 1; i <= num_cached; ++i) {
      cached_.remove(letters.blocks.substr(0, i));
      held_.insert(letters.blocks.substr(0, i));
    }
    const size_t num_full = letters.blocks.size();
    const auto num_wanted =
        keeps_all_ ? static_cast<size_t>(BlocksFor(letters.length())) : num_full;
    const size_t num_left = num_blocks_ - held_.size() - num_new_;
    const size_t num_new = std::min(num_wanted - num_cached, num_left);
    num_new_ += num_new;
    while (cached_.size() + held_.size() + num_new_ > num_blocks_) cached_.pop_front();
    const size_t num_kept = std::min(num_full, num_cached + num_new);
    step_.push_back(letters.blocks.substr(0, num_kept));
  }

  // The step ends.
  void Complete() {
    held_.clear();
    num_new_ = 0;
    for (const std::string& kept : step_) {
      for (size_t i = kept.size(); i > 0; --i) {
        cached_.remove(kept.substr(0, i));
        cached_.push_back(kept.substr(0, i));
      }
    }
    step_.clear();
  }

 private:
  bool Has(const std::string& block) const {
    return held_.contains(block) || std::ranges::find(cached_, block) != cached_.end();
  }

  size_t num_blocks_;
  bool keeps_all_;
  std::list<std::string> cached_;  // that no prompt holds; the next to be evicted first
  std::set<std::string> held_;     // by prompts of the step, found in the cache
  size_t num_new_ = 0;             // held besides, to be computed
  std::vector<std::string> step_;  // what is kept of its prompts, in its order
};

struct Waiting {
  Letters letters;
  TimeUs arrival_us = 0;
  TimeUs slo_us = 0;  // 0: none
  int32_t priority = 0;
  int32_t num_cached = 0;  // blocks that were in the cache when it arrived
};

// The whole queue, each scored: the least first, of equal ones the earliest.
template <typename Score>
std::vector<RequestId> Scan(const std::map<RequestId, Waiting>& waiting, const Score& score) {
  using Value = decltype(score(waiting.begin()->second));
  std::vector<std::pair<Value, RequestId>> scored;
  for (const auto& [id, request] : waiting) scored.emplace_back(score(request), id);
  std::ranges::stable_sort(scored, {}, &std::pair<Value, RequestId>::first);
  std::vector<RequestId> order;
  for (const auto& [value, id] : scored) order.push_back(id);
  return order;
}

inline Letters RandomLetters(Random* random) {
  Letters letters;
  const int64_t length = random->Between(0, 8);
  while (std::ssize(letters.blocks) < length) {
    letters.blocks += static_cast<char>('a' + random->Between(0, random->OneIn(4) ? 3 : 0));
  }
  letters.tail = static_cast<int32_t>(random->Between(letters.blocks.empty() ? 1 : 0, 31));
  return letters;
}

// The times of steps by `fit`, on a device whose speed changes now and then; `*model` is told.
inline auto DriftingCost(const CostFit& fit, CostModel* model) {
  return [fit, model, speed = 1.0](const StepWork& work, Random* random) mutable {
    if (random->OneIn(100)) speed = 0.5 + random->Uniform();
    const auto us = static_cast<TimeUs>(PredictUs(fit, work) * speed) + 1;
    model->Observe(work, static_cast<double>(us));
    return us;
  };
}

// Runs a random load of requests `make(random)` and compares each step with the choices of
// `first(all that wait, cache, now)`: one, or with batching `saturate` one after the other as long
// as they do not saturate the device. The time of a step is `duration(work, random)`.
template <typename Make, typename First, typename Duration>
void CompareWithOrder(const EngineConfig& config, uint64_t seed, const Make& make,
                      const First& first, Duration duration) {
  SCOPED_TRACE(seed);
  Random random(seed);
  const SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
  const bool shares_steps = scheduler_config.policies.batching == Batching::kSaturate;
  const auto saturation_tokens = static_cast<double>(SaturationTokens(scheduler_config.cost));
  Scheduler scheduler(scheduler_config);
  ReferenceCache cache(config.scheduler.num_kv_blocks, scheduler_config.policies.retention);
  std::map<RequestId, Waiting> waiting;
  TimeUs now_us = random.Between(0, 1'000'000'000);
  RequestId next_id = 0;
  int32_t num_hits = 0, num_shared_steps = 0;
  for (int round = 0; round < 1500; ++round) {
    const int64_t most = waiting.size() >= 30 ? 1 : shares_steps ? 9 : 3;
    for (int64_t i = random.Between(0, most); i > 0; --i) {
      Waiting one = make(&random);
      one.arrival_us = now_us;
      one.num_cached = cache.NumCached(one.letters);
      Request request = MakeRequest(one.letters);
      request.priority = one.priority;
      if (one.slo_us > 0) request.slo_ttft_us = one.slo_us;
      waiting[next_id] = one;
      scheduler.Arrive(next_id++, std::move(request), now_us);
      if (random.OneIn(2)) now_us += random.Between(0, 2000);
    }
    if (random.OneIn(8) && !waiting.empty()) {
      const auto victim = std::next(waiting.begin(), random.Between(0, std::ssize(waiting) - 1));
      scheduler.Cancel(victim->first, now_us);
      waiting.erase(victim);
    }
    if (waiting.empty()) continue;
    std::vector<RequestId> expected;
    StepWork work;
    do {
      const RequestId next = first(waiting, cache, now_us);
      const Letters letters = waiting[next].letters;
      const int32_t num_cached = cache.NumCached(letters) * kBlockTokens;
      const StepWork own = WorkOf(letters.length() - num_cached, num_cached);
      if (!expected.empty() && work.num_tokens + own.num_tokens > saturation_tokens) break;
      num_hits += num_cached > 0;
      work += own;
      cache.Admit(letters);
      waiting.erase(next);
      expected.push_back(next);
    } while (shares_steps && !waiting.empty());
    cache.Complete();
    const std::vector<RequestId> step = RunStep(&scheduler, &now_us, duration(work, &random));
    ASSERT_EQ(step, expected) << "round " << round;
    num_shared_steps += step.size() > 1;
  }
  EXPECT_GT(num_hits, 300);
  EXPECT_GE(num_shared_steps, shares_steps ? 300 : 0);
}

// The same with the scan under `score(waiting, cache, now)`.
template <typename Make, typename Score, typename Duration>
void CompareWithScan(const EngineConfig& config, uint64_t seed, const Make& make,
                     const Score& score, Duration duration) {
  const auto first = [&score](const std::map<RequestId, Waiting>& waiting,
                              const ReferenceCache& cache, TimeUs now_us) {
    return Scan(waiting, [&](const Waiting& request) { return score(request, cache, now_us); })[0];
  };
  CompareWithOrder(config, seed, make, first, std::move(duration));
}

}  // namespace skein::testing
