#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kv/tree_groups.h"
#include "sched/decode_set/decode_cost.h"
#include "sched/decode_set/load_estimate.h"
#include "sched/decode_set/measured_cost.h"
#include "sched/decode_set/waits_with_all.h"
#include "skein/stop_options.h"

namespace skein {

// The limits of the server's decode batches.
struct DecodeLimits {
  int32_t max_rows = 1;
  int64_t max_kv_tokens = 0;  // of all requests together
};

// The model-based stop rule of the decode set `prefix-homogeneous`. For each further group, it
// predicts the throughput of a batch with the group and of a batch without. The predictions use the
// cost of steps by shared and own tokens (sched/decode_set/decode_cost.h). So neither batch need be
// tried. There are two ways to serve:
//
//   all     every request may join
//   turns   some groups have a turn: their requests may join, the others wait for a later turn.
//           A turn may limit the rows of the batch, too.
//
//             gain, and no longer waits                    the groups of the turn have joined
//   all  ------------------------------------>  turns  -----------------------------------> next
//   turn
//        <------------------------------------         (once that lowers the batch's rate no more)
//                 half of the gain is gone,
//                 waits become longer,
//                 or nobody waits
//
// A turn serves the group of the request that has waited longest. It adds further groups, as long
// as each raises the predicted throughput, those with the most waiting requests first. If the
// prefixes of all groups exceed the memory, those that need the fewest tokens of their prefixes
// computed for each waiting request go before: a prefix that is cached now would be evicted before
// its turn, and computed again. A prediction counts the requests that will arrive during the turn,
// at the rate of the latest arrivals. It also counts the measured prefill time of a request, which
// is the same in both ways. In turns, some groups wait for others. Turns therefore begin only if
// requests would have to wait in any case, and if the predicted wait is no longer than in the way
// `all`. For both ways, the prediction counts the steps until the rows of the present batch end. A
// batch of more rows than the turn's has to shrink first. The prediction also weighs the case that
// no further request arrives.
//
// Turns that began for the sake of requests to come end if these do not come: if the longest wait,
// from a request's arrival to the turn of its group, becomes longer than it would have been with
// all since turns began (sched/decode_set/waits_with_all.h), and the waits from now on are longer
// than with all, too.
//
// An account bounds the loss where the device differs from its fit. A step of a turn changes it by
// the time that its tokens would have taken with all, by the measured factor of that way, minus its
// own time. A step with all pays in kMaxLoss of its time. The account holds at most kMaxLoss of
// kLossSteps steps. Turns end once it is empty, and begin no more until it is paid back. If steps
// of a turn take f times the time with all, turns lose at most that and one step of f: 2 % of 1,000
// batches up to f = 11. No rule loses less than one step, since it has to see one.
//
// Steps of turns show nothing of a device on which batches of many groups are faster than
// predicted: one whose cache is larger than that of the fit, or that reads shared tokens once.
// Steps whose tokens exceed the cache of the fit do (sched/decode_set/measured_cost.h). No step
// is made to test this: such steps come at the begin of a load, between two turns, and as answers
// grow. Once the estimated cache has changed by kLargeChange, the way and the turn are decided
// again.
//
// Measured steps correct the predictions by a factor for each of the two ways, within
// [1 / kMaxFactor, kMaxFactor]. A way without measurements uses the factor of the other way. The
// factor of the way that is not taken slowly approaches that of the other, so that the way is tried
// again. Without a fit, all requests may join. Deterministic: no random numbers. Not thread-safe.
class GroupTurns {
 public:
  static constexpr double kMaxFactor = 100;
  // The share of the time of batches with all that turns may lose, and the number of batches over
  // which it holds.
  static constexpr double kMaxLoss = 0.01;
  static constexpr double kLossSteps = 1000;
  // A change of the estimated cache, as a share of it, that calls for a new decision.
  static constexpr double kLargeChange = 0.1;
  struct Waiting {
    int32_t cached_tokens = 0;  // of the request's prompt, in the prefix cache
    TimeUs since_us = 0;
  };
  // The facts about a waiting request that the tree does not know.
  using WaitingOf = std::function<Waiting(ChunkedHashTree::Handle)>;

  // `tree` outlives this object. A level of the tree has `chunk_tokens`.
  GroupTurns(const StopOptions& options, const DecodeFit& fit, const DecodeLimits& limits,
             const ChunkedHashTree* tree, int32_t chunk_tokens, WaitingOf waiting_of);

  // The facts about the batch that the tree does not know.
  struct Batch {
    int64_t prompt_tokens = 0;  // of the batch's requests
    int64_t output_tokens = 0;  // generated so far
  };

  // From now on, predictions use this fit. REQUIRES: restricts() is false.
  void AdoptFit(const DecodeFit& fit);

  // A request with this prompt and at most `budget` tokens of output has arrived.
  void NoteArrival(int32_t prompt_tokens, int32_t budget, TimeUs now_us);

  LoadEstimate& load() { return load_; }
  const DecodeLimits& limits() const { return limits_; }
  // The KV tokens that a batch holds; shared prefixes count once.
  double UsedTokens(const Batch& batch) const {
    return static_cast<double>(batch.prompt_tokens + batch.output_tokens -
                               (groups_.active_levels() - groups_.working_set()) * chunk_tokens_);
  }
  // A step of `num_decodes` decodes and no prompt took `us`.
  void ObserveStep(int32_t num_decodes, const Batch& batch, double us);

  // A step with prompts and decodes took `us`; `num_joined` requests have joined since the last
  // call.
  void ObservePrompts(int32_t num_decodes, const Batch& batch, int64_t num_joined, double us);

  // Whether turns have cost more than they may. They end at the next decision, and begin no more
  // until the account is paid back.
  bool owes() const { return credit_steps_ <= 0; }
  // Whether the account and measured steps agree with the fit.
  bool FitHolds() const { return !owes() && Deviation() < 1 + options_.min_gain; }
  // Whether only the requests of the present turn may join.
  bool restricts() const { return restricts_; }
  // The number of the present turn.
  uint32_t turn() const { return turn_; }
  // Whether the present way is to be decided again at once.
  bool IsOutdated() const {
    return owes() ||
           std::abs(cost_.CacheChange(decided_cache_, load_.prompt_tokens())) > kLargeChange;
  }
  // Whether the batch has all rows of the turn.
  bool IsFull(int32_t num_active) const { return restricts_ && num_active >= turn_rows_; }

  // Decides again. `joinable`: a waiting request may join without a new turn. A turn is chosen anew
  // as long as the batch is empty. `urgent`: the request
  // that has waited longest must have a turn now. Returns whether the turn or the way has changed.
  // If it has, Opened returns the requests of the turn's groups. REQUIRES: a request waits.
  // O(requests).
  bool Decide(const Batch& batch, bool joinable, bool urgent, TimeUs now_us);
  std::span<const ChunkedHashTree::Handle> Opened() const { return opened_; }
  // Lets all requests join: another rule needs this way.
  void OpenAll();
  std::optional<ChunkedHashTree::Handle> PeerOf(ChunkedHashTree::Handle request) const {
    return groups_.PeerOf(request);
  }

 private:
  enum Way { kAll = 0, kTurns = 1 };

  // A batch of some groups. `rate` is its predicted throughput in tokens per second.
  struct Forecast {
    int32_t num_rows = 0;
    double rate = 0;
    int32_t most_rows = 0;  // if there were more requests of these groups
  };
  // The arrivals that a decision counts on.
  struct Arrivals {
    double per_s = 0;
    double for_s = 0;
  };
  // The predicted waits of the last of the requests that are there, and of the last of those to
  // come from its arrival on. Not positive: it finds a slot at once.
  struct Waits {
    double present_s = 0;
    double last_s = 0;
    // If requests arrive as before. Without further arrivals, the longest wait is present_s.
    double LongestS() const { return std::max(present_s, last_s); }
    double MeanS() const { return (LongestS() + present_s) / 2; }  // of both cases
  };
  // The groups of a batch, summed.
  struct Mix {
    double num_requests = 0;
    double prefix_tokens = 0;  // each prefix counted once
    double asked_tokens = 0;   // each prefix counted once per request
  };

  DecodeWork WorkOf(int32_t num_decodes, const Batch& batch) const;
  double RateOf(const DecodeWork& work, Way way) const;
  double FactorOf(Way way) const;
  // The factor by which measured steps of a way differ from the fit, up or down, whichever is more.
  double Deviation() const;
  Forecast ForecastOf(const Mix& mix, double max_rows) const;
  Forecast BestOf(const Mix& mix, double max_rows) const;
  void Add(const TreeGroup& group, Mix* mix);
  // The tokens that the group's waiting requests would compute for its prefix.
  int64_t MissingTokens(const TreeGroup& group) const;
  Forecast ForecastAll(std::span<const TreeGroup> groups);
  Forecast ChooseTurn(std::span<const TreeGroup> groups);
  double ServiceS(const Forecast& forecast) const;
  double StepsToEnd(const Batch& batch, double num_ends) const;
  double DrainS(const Batch& batch, double rows) const;
  double LastJoinS(const Batch& batch, const Forecast& forecast, double num_requests) const;
  Waits WaitsOf(const Batch& batch, const Forecast& forecast, double num_requests,
                const Arrivals& arrivals) const;
  WaitsWithAll::Load LoadWithAll(const Forecast& all) const;
  double WaitedS(const TreeGroup& group, TimeUs now_us) const;
  double LongestInTurnsS(const Batch& batch, const Forecast& turn, TimeUs now_us);
  bool BeginsTurns(const Forecast& all, const Forecast& turn, const Waits& with_all,
                   const Waits& in_turns) const;
  bool EndsTurns(const Forecast& all, const Forecast& turn, const Waits& with_all,
                 const Waits& in_turns, double longest_with_all_s, double longest_in_turns_s) const;
  bool TakesNextTurn(const Batch& batch, const Forecast& turn) const;
  bool Begin(const Forecast& turn);

  const StopOptions options_;
  MeasuredCost cost_;
  const DecodeLimits limits_;
  const ChunkedHashTree* const tree_;
  const int32_t chunk_tokens_;
  const WaitingOf waiting_of_;
  TreeGroups groups_;
  LoadEstimate load_;
  struct Factor {
    double log_mean = 0;
    int32_t num_observed = 0;
  };
  std::array<Factor, 2> factors_;  // by Way
  // The prefill time of the latest requests that joined.
  struct PromptTime {
    double us = 0;
    double num_requests = 0;
    double PerRequestS() const { return num_requests < 1 ? 0 : 1e-6 * us / num_requests; }
  };
  PromptTime prompts_;
  double gain_ = 1;  // predicted rate in turns over that with all, by the fit
  double credit_steps_ = kMaxLoss * kLossSteps;  // in batches with all
  bool restricts_ = false;
  uint32_t turn_ = 0;
  int32_t turn_rows_ = 0;
  double decided_cache_ = 0;     // the estimated cache at the latest decision
  WaitsWithAll waits_with_all_;  // since turns began
  // The state of a decision:
  double growth_ = 1;              // requests now and to come, over requests now
  double own_tokens_ = 0;          // of a row, without its prefix
  bool evicts_ = false;            // the prefixes of all groups exceed the memory
  std::vector<TreeGroup> by_age_;  // with waiting requests, the one that has waited longest first
  std::vector<TreeGroup> chosen_;
  size_t num_chosen_ = 0;
  std::vector<ChunkedHashTree::Handle> opened_;
};

}  // namespace skein
