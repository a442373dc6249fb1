#pragma once

// Orders of waiting requests against the papers' literal scans of the queue: prompts made of
// blocks, the prefix cache by its definition, and a random load.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
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
inline std::vector<RequestId> Step(Scheduler* scheduler, TimeUs* now_us, TimeUs duration_us) {
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
class ReferenceCache {
 public:
  // REQUIRES: retention is kAll or kPrefix.
  ReferenceCache(size_t num_blocks, Retention retention)
      : num_blocks_(num_blocks), keeps_all_(retention == Retention::kAll) {}

  int32_t NumCached(const Letters& letters) const {
    const int32_t most = (letters.length() - 1) / kBlockTokens;
    int32_t count = 0;
    while (count < most && Find(letters.blocks.substr(0, count + 1)) != cached_.end()) ++count;
    return count;
  }

  // Each named by all letters up to its end.
  const std::list<std::string>& blocks() const { return cached_; }

  void Run(const Letters& letters) {
    const int32_t num_cached = NumCached(letters);
    for (int32_t i = 1; i <= num_cached; ++i) cached_.erase(Find(letters.blocks.substr(0, i)));
    const size_t num_full = letters.blocks.size();
    const size_t num_kept = keeps_all_ ? num_full : std::min(num_full, num_blocks_);
    const auto num_blocks = static_cast<size_t>(BlocksFor(letters.length()));
    const size_t num_held = keeps_all_ ? num_blocks : num_kept;
    while (cached_.size() + num_held > num_blocks_) cached_.pop_front();
    for (size_t i = num_kept; i > 0; --i) {
      const auto found = Find(letters.blocks.substr(0, i));
      if (found != cached_.end()) cached_.erase(found);
      cached_.push_back(letters.blocks.substr(0, i));
    }
  }

 private:
  std::list<std::string>::const_iterator Find(const std::string& block) const {
    return std::ranges::find(cached_, block);
  }

  size_t num_blocks_;
  bool keeps_all_;
  std::list<std::string> cached_;  // the next to be evicted first
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
  std::vector<RequestId> order;
  for (const auto& [id, request] : waiting) order.push_back(id);
  std::ranges::stable_sort(order, {}, [&](RequestId id) { return score(waiting.at(id)); });
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

// What steps take, by `fit`, on a device whose speed changes now and then; `*model` is told.
inline auto DriftingCost(const CostFit& fit, CostModel* model) {
  return [fit, model, speed = 1.0](const Letters& letters, int32_t num_cached,
                                   Random* random) mutable {
    if (random->OneIn(100)) speed = 0.5 + random->Uniform();
    const StepWork work =
        WorkOf(letters.length() - num_cached * kBlockTokens, num_cached * kBlockTokens);
    const auto us = static_cast<TimeUs>(PredictUs(fit, work) * speed) + 1;
    model->Observe(work, static_cast<double>(us));
    return us;
  };
}

// Runs a random load of requests `make(random)`, one per step, and compares each choice with
// `first(all that wait, cache, now)`. The time of a step is
// `duration(letters, cached blocks, random)`.
template <typename Make, typename First, typename Duration>
void CompareWithOrder(const EngineConfig& config, uint64_t seed, const Make& make,
                      const First& first, Duration duration) {
  SCOPED_TRACE(seed);
  Random random(seed);
  const SchedulerConfig scheduler_config = MakeSchedulerConfig(config).value();
  Scheduler scheduler(scheduler_config);
  ReferenceCache cache(config.num_kv_blocks, scheduler_config.retention);
  std::map<RequestId, Waiting> waiting;
  TimeUs now_us = random.Between(0, 1'000'000'000);
  RequestId next_id = 0;
  int32_t num_hits = 0;
  for (int round = 0; round < 1500; ++round) {
    for (int64_t i = random.Between(0, waiting.size() < 30 ? 3 : 1); i > 0; --i) {
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
    const RequestId expected = first(waiting, cache, now_us);
    const Letters letters = waiting[expected].letters;
    const int32_t num_cached = cache.NumCached(letters);
    num_hits += num_cached > 0;
    const std::vector<RequestId> step =
        Step(&scheduler, &now_us, duration(letters, num_cached, &random));
    ASSERT_THAT(step, ::testing::ElementsAre(expected)) << "round " << round;
    cache.Run(letters);
    waiting.erase(expected);
  }
  EXPECT_GT(num_hits, 300);
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
