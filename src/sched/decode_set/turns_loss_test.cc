// The loss of the stop rule `model` to first come, first served on devices that differ from their
// profile. Steps take virtual time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "sched/decode_set/prefix_groups.h"

namespace skein {
namespace {

constexpr int32_t kSharedBlocks = 160, kOutputs = 200, kGroups = 8;
constexpr double kShared = kSharedBlocks * kBlockTokens;
constexpr int32_t kMaxRows = 500;

// The profile: the cache holds four prefixes.
constexpr DecodeFit kProfile = {
    .step_us = 17'000, .token_us = 0.16, .arithmetic_share = 0.08, .cache_tokens = 24'000};

// The batch of a step.
struct Batch {
  DecodeWork work;
  int num_groups = 0;
};
using StepUs = std::function<double(const Batch&, int64_t step)>;  // `step` of a burst

struct Row {
  int group = 0;
  int32_t num_left = kOutputs;
  std::unique_ptr<RequestRecord> request;
};

Batch BatchOf(const std::vector<Row>& rows) {
  Batch batch;
  std::map<int, int> groups;
  double own = 0;
  for (const Row& row : rows) {
    ++groups[row.group];
    own += kBlockTokens + (kOutputs - row.num_left);
  }
  batch.num_groups = static_cast<int>(groups.size());
  batch.work.num_rows = static_cast<double>(rows.size());
  batch.work.asked = batch.work.num_rows * kShared + own;
  batch.work.unique = batch.num_groups * kShared + own;
  return batch;
}

// Decodes of groups. Requests arrive at given times.
class Server {
 public:
  // With `turns`, the rule `model` chooses, else arrival.
  Server(bool turns, StepUs step_us) : step_us_(std::move(step_us)) {
    if (!turns) return;
    PrefixGroupOptions options;
    groups_ = std::make_unique<PrefixGroups>(
        options, nullptr, nullptr,
        DecodeDevice{.fit = kProfile, .limits = {kMaxRows, 100'000'000}});
  }

  // Serves so many requests, one each `between_us`. Returns the time that it takes.
  TimeUs Serve(int num_requests, double between_us) {
    const TimeUs begin_us = now_us_;
    num_steps_ = 0;
    for (int num_arrived = 0; num_arrived < num_requests || !line_.empty() || !rows_.empty();) {
      for (; num_arrived < num_requests && begin_us + num_arrived * between_us <= now_us_;
           ++num_arrived)
        Arrive();
      Join();
      if (rows_.empty()) {
        now_us_ = begin_us + std::llround(std::ceil(num_arrived * between_us));
        continue;
      }
      Step();
    }
    return now_us_ - begin_us;
  }

 private:
  void Arrive() {
    auto request = std::make_unique<RequestRecord>();
    const uint64_t id = next_id_++;
    request->arrival = request->id = id;
    request->budget = kOutputs;
    request->execution_class = ExecutionClass::kDecode;
    if (groups_ != nullptr) {
      auto sequence = std::make_unique<Sequence>(request.get(), 0, PrefixScope{});
      sequence->tokens.assign(size_t{kBlockTokens} * kSharedBlocks, GroupOf(id));
      sequence->tokens.resize(sequence->tokens.size() + kBlockTokens,
                              1000 + static_cast<TokenId>(id));
      request->prompt_len = static_cast<int32_t>(sequence->tokens.size());
      sequence->blocks.Hash(sequence->tokens);
      request->sequences.push_back(std::move(sequence));
      groups_->Enter(request->sequences.front().get(), now_us_);
    }
    line_[id] = std::move(request);
  }
  static int GroupOf(uint64_t id) { return static_cast<int>(id * 7919 % 104'729 % kGroups); }

  void Join() {
    while (std::ssize(rows_) < kMaxRows && !line_.empty()) {
      uint64_t id = line_.begin()->first;
      if (groups_ != nullptr && groups_->FollowsOrder()) {
        groups_->Join(line_.at(id).get(), now_us_);
      } else if (groups_ != nullptr) {
        Sequence* next = groups_->Candidate(now_us_);
        if (next == nullptr || !groups_->Approves(now_us_)) break;
        groups_->Join(next->request, now_us_);
        id = next->request->id;
      }
      rows_.push_back({.group = GroupOf(id), .request = std::move(line_.at(id))});
      line_.erase(id);
    }
    if (groups_ != nullptr) groups_->EndRound();
  }

  void Step() {
    const TimeUs us = std::max<TimeUs>(1, std::llround(step_us_(BatchOf(rows_), num_steps_)));
    now_us_ += us;
    if (groups_ != nullptr) groups_->ObserveStep(std::ssize(rows_), 0, us);
    ++num_steps_;
    for (Row& row : rows_) {
      if (--row.num_left > 0 || groups_ == nullptr) continue;
      row.request->sequences.front()->tokens.resize(row.request->prompt_len + kOutputs - 1);
      groups_->ObserveEnd(*row.request);
      groups_->Leave(row.request.get());
    }
    std::erase_if(rows_, [](const Row& row) { return row.num_left == 0; });
  }

  const StepUs step_us_;
  std::unique_ptr<PrefixGroups> groups_;
  std::map<uint64_t, std::unique_ptr<RequestRecord>> line_;
  std::vector<Row> rows_;
  TimeUs now_us_ = 0;
  int64_t num_steps_ = 0;
  uint64_t next_id_ = 0;
};

// The speed in bursts of 1,500 requests, over that of first come, first served. Requests arrive
// `overload` times as fast as the latter can serve them.
struct Speeds {
  double least = 1e9;  // of a burst
  double whole = 0;
};

Speeds Compare(const StepUs& step_us, double overload) {
  const double rows = kMaxRows, own = rows * (kBlockTokens + kOutputs / 2.0);
  const Batch full{{rows, rows * kShared + own, kGroups * kShared + own}, kGroups};
  const double between_us = step_us(full, 0) * kOutputs / kMaxRows / overload;
  Server turns(/*turns=*/true, step_us), fill(/*turns=*/false, step_us);
  Speeds speeds;
  double turns_us = 0, fill_us = 0;
  for (int burst = 0; burst < 2; ++burst) {
    const auto one_us = static_cast<double>(turns.Serve(1500, between_us));
    const auto other_us = static_cast<double>(fill.Serve(1500, between_us));
    speeds.least = std::min(speeds.least, other_us / one_us);
    turns_us += one_us;
    fill_us += other_us;
  }
  speeds.whole = fill_us / turns_us;
  return speeds;
}

StepUs Steps(const DecodeFit& fit, double factor) {
  return [=](const Batch& batch, int64_t) { return factor * PredictUs(fit, batch.work); };
}

DecodeFit Changed(const std::function<void(DecodeFit*)>& change) {
  DecodeFit fit = kProfile;
  change(&fit);
  return fit;
}

TEST(TurnsLoss, GainWhereTheProfileHolds) {
  for (const double factor : {0.9, 1.0, 1.1}) {
    EXPECT_GE(Compare(Steps(kProfile, factor), 10).whole, 2) << factor;
  }
}

// Devices that differ from the profile by 25 times, in one or all costs, up or down. A burst is of
// about 1,000 batches. On the last three devices, only batches of many groups are faster.
TEST(TurnsLoss, IsSmallOnDevicesUnlikeTheProfile) {
  const DecodeFit once = Changed([](DecodeFit* fit) {
    fit->cache_tokens = 1e9;
    fit->arithmetic_share = 0.001;
  });
  const std::pair<const char*, StepUs> devices[] = {
      {"all x 25", Steps(kProfile, 25)},
      {"all / 25", Steps(kProfile, 0.04)},
      {"reads once x 25", Steps(once, 25)},
      {"reads once / 25", Steps(once, 0.04)},
      {"steps x 25", Steps(Changed([](DecodeFit* fit) { fit->step_us *= 25; }), 1)},
      {"steps / 25", Steps(Changed([](DecodeFit* fit) { fit->step_us /= 25; }), 1)},
      {"tokens x 25", Steps(Changed([](DecodeFit* fit) { fit->token_us *= 25; }), 1)},
      {"rows", Steps(Changed([](DecodeFit* fit) { fit->row_us = 1000; }), 1)},
      {"arithmetic", Steps(Changed([](DecodeFit* fit) { fit->arithmetic_share = 1; }), 1)},
      {"cache / 25", Steps(Changed([](DecodeFit* fit) { fit->cache_tokens /= 25; }), 1)},
      {"reads once", Steps(Changed([](DecodeFit* fit) { fit->cache_tokens = 1e9; }), 1)},
      {"tokens / 25", Steps(Changed([](DecodeFit* fit) { fit->token_us /= 25; }), 1)},
      {"cache x 25", Steps(Changed([](DecodeFit* fit) { fit->cache_tokens *= 25; }), 1)}};
  for (const auto& [name, step_us] : devices) {
    for (const double overload : {2.0, 10.0}) {
      EXPECT_GE(Compare(step_us, overload).least, 0.98) << name << ", overload " << overload;
    }
  }
}

// All requests come at once, so turns begin before a batch of many groups is seen. Later bursts
// lose nothing: what was measured is kept.
TEST(TurnsLoss, EndsWithTheFirstTurnIfNothingTellsBefore) {
  const DecodeFit devices[] = {Changed([](DecodeFit* fit) { fit->cache_tokens = 1e9; }),
                               Changed([](DecodeFit* fit) { fit->token_us /= 25; })};
  for (const DecodeFit& device : devices) {
    const Speeds speeds = Compare(Steps(device, 1), 1000);
    EXPECT_GE(speeds.least, 0.93) << device.token_us;
    EXPECT_GE(speeds.whole, 0.96) << device.token_us;
  }
}

// A cache of twice or four times the size still rewards turns, or at least costs nothing.
TEST(TurnsLoss, GainWithALargerCache) {
  for (const auto& [growth, least] : {std::pair{2.0, 1.3}, {4.0, 0.98}}) {
    const DecodeFit device = Changed([g = growth](DecodeFit* fit) { fit->cache_tokens *= g; });
    for (const double overload : {2.0, 10.0}) {
      EXPECT_GE(Compare(Steps(device, 1), overload).least, least) << growth << " " << overload;
    }
  }
}

// Batches of few groups are slow: from the beginning, or again and again.
TEST(TurnsLoss, IsSmallOnAnAdversary) {
  for (const double factor : {2.0, 5.0, 25.0}) {
    for (const int64_t period : {0, 50}) {
      const StepUs step_us = [=](const Batch& batch, int64_t step) {
        const bool slow = batch.num_groups <= 4 && (period == 0 || step / period % 2 == 1);
        return PredictUs(kProfile, batch.work) * (slow ? factor : 1);
      };
      EXPECT_GE(Compare(step_us, 10).least, 0.98) << factor << " " << period;
    }
  }
}

}  // namespace
}  // namespace skein
