#include "sched/decode_set/group_turns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/check.h"

namespace skein {
namespace {

// With fewer requests, little is known about the groups of a load.
constexpr int32_t kLeastRequests = 16;
// Groups that lower the predicted throughput may be followed by others that raise it: the search
// ends after this many.
constexpr int kMaxWorse = 3;
// A turn may be limited to one of these shares of the possible rows.
constexpr std::array<double, 8> kRowShares = {1, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1};
constexpr double kFactorRate = 1.0 / 16;
constexpr double kMaxChange = 4;         // the most by which one step may differ from the mean
constexpr double kPromptRequests = 128;  // that a measured time of prompts counts
constexpr int32_t kLeastObserved = 8;
constexpr double kReturnRate = 1.0 / 4096;  // for each step that runs the other way
// Turns begin only if requests would wait at least this long without turns.
constexpr double kLeastWaitS = 5;
// The next turn begins if it raises the batch's rate at least by this factor. Its requests stay
// longer than those of the turn before: when the latter end, the batch has fewer groups again.
constexpr double kNextTurnGain = 1.15;
// Turns end if the longest wait is longer than with all by this factor. Waits may grow by a fifth
// (docs/results/feather.md). Half of that is left for the error of the predictions.
constexpr double kLongerWait = 1.1;
// A smaller batch must be better than a larger one by this factor, since its predictions are less
// exact.
constexpr double kFewerRows = 1.03;

}  // namespace

GroupTurns::GroupTurns(const StopOptions& options, const DecodeFit& fit, const DecodeLimits& limits,
                       const ChunkedHashTree* tree, int32_t chunk_tokens, WaitingOf waiting_of)
    : options_(options),
      cost_(fit),
      limits_(limits),
      tree_(tree),
      chunk_tokens_(chunk_tokens),
      waiting_of_(std::move(waiting_of)),
      groups_(tree),
      decided_cache_(fit.cache_tokens) {}

void GroupTurns::AdoptFit(const DecodeFit& fit) {
  SKEIN_CHECK(!restricts_);
  cost_ = MeasuredCost(fit);
  decided_cache_ = cost_.fit().cache_tokens;
  factors_ = {};
  prompts_ = {};
}

// Shared levels are whole blocks. So they tell how many tokens of the batch are the same.
DecodeWork GroupTurns::WorkOf(int32_t num_decodes, const Batch& batch) const {
  const int32_t num_active = tree_->num_active();
  if (num_active == 0 || num_decodes == 0) return {};
  const double share = static_cast<double>(num_decodes) / num_active;  // the other rows prefill
  const double asked = share * static_cast<double>(batch.prompt_tokens + batch.output_tokens);
  const double again =
      share *
      static_cast<double>((groups_.active_levels() - groups_.working_set()) * chunk_tokens_);
  return {static_cast<double>(num_decodes), asked, std::max(1.0, asked - again)};
}

double GroupTurns::FactorOf(Way way) const {
  const Factor &own = factors_[way], &other = factors_[1 - way];
  const bool known = own.num_observed >= kLeastObserved || other.num_observed < kLeastObserved;
  return std::exp((known ? own : other).log_mean);
}

double GroupTurns::Deviation() const {
  double most = 0;
  for (const Factor& factor : factors_) {
    if (factor.num_observed >= kLeastObserved) most = std::max(most, std::abs(factor.log_mean));
  }
  return std::exp(most);
}

double GroupTurns::RateOf(const DecodeWork& work, Way way) const {
  if (work.num_rows < 1) return 0;
  return 1e6 * work.num_rows / (cost_.PredictUs(work) * FactorOf(way));
}

void GroupTurns::ObserveStep(int32_t num_decodes, const Batch& batch, double us) {
  if (!cost_.known()) return;
  const DecodeWork work = WorkOf(num_decodes, batch);
  if (work.num_rows < 1) return;
  // Before the way with all is measured, the fit stands for it.
  const bool measured = factors_[kAll].num_observed >= kLeastObserved;
  const double all_us = cost_.PredictUs(work) * (measured ? FactorOf(kAll) : 1) * gain_;
  credit_steps_ += restricts_ ? 1 - us / all_us : kMaxLoss;
  credit_steps_ = std::min(credit_steps_, kMaxLoss * kLossSteps);
  cost_.Observe(work, us);
  const double most = std::log(kMaxFactor), most_at_once = std::log(kMaxChange);
  Factor& factor = factors_[restricts_ ? kTurns : kAll];
  double log_ratio = std::clamp(std::log(us / cost_.PredictUs(work)), -most, most);
  if (factor.num_observed >= kLeastObserved) {
    log_ratio =
        std::clamp(log_ratio, factor.log_mean - most_at_once, factor.log_mean + most_at_once);
  }
  const double rate = std::max(kFactorRate, 1.0 / ++factor.num_observed);
  factor.log_mean += rate * (log_ratio - factor.log_mean);
  Factor& other = factors_[restricts_ ? kAll : kTurns];
  other.log_mean += kReturnRate * (factor.log_mean - other.log_mean);
}

void GroupTurns::NoteArrival(int32_t prompt_tokens, int32_t budget, TimeUs now_us) {
  load_.NoteArrival(prompt_tokens, budget, now_us);
  if (restricts_) waits_with_all_.Arrive(now_us);
}

void GroupTurns::ObservePrompts(int32_t num_decodes, const Batch& batch, int64_t num_joined,
                                double us) {
  if (!cost_.known()) return;
  const DecodeWork work = WorkOf(num_decodes, batch);
  const double decode_us =
      work.num_rows < 1 ? 0 : cost_.PredictUs(work) * FactorOf(restricts_ ? kTurns : kAll);
  prompts_.us += std::max(0.0, us - decode_us);
  prompts_.num_requests += static_cast<double>(num_joined);
  if (prompts_.num_requests < kPromptRequests) return;
  prompts_.us /= 2;
  prompts_.num_requests /= 2;
}

// Predicts a batch of at most `max_rows` requests, from the groups of the mix in proportion.
GroupTurns::Forecast GroupTurns::ForecastOf(const Mix& mix, double max_rows) const {
  const double kv_rows = (static_cast<double>(limits_.max_kv_tokens) - mix.prefix_tokens) /
                         std::max(1.0, own_tokens_ + chunk_tokens_);
  const double most_rows = std::max(1.0, std::floor(std::min(max_rows, kv_rows)));
  const double rows = std::clamp(std::floor(mix.num_requests), 1.0, most_rows);
  const double own = rows * own_tokens_;
  const double asked = rows * mix.asked_tokens / std::max(1.0, mix.num_requests) + own;
  const DecodeWork work{rows, asked, std::min(asked, mix.prefix_tokens + own)};
  const double outputs = std::max(1.0, load_.output_tokens());
  const double decode_s = outputs / RateOf(work, kTurns);  // a request's share of the batch's time
  return {.num_rows = static_cast<int32_t>(rows),
          .rate = outputs / (decode_s + prompts_.PerRequestS()),
          .most_rows = static_cast<int32_t>(most_rows)};
}

GroupTurns::Forecast GroupTurns::BestOf(const Mix& mix, double max_rows) const {
  Forecast best;
  for (const double share : kRowShares) {
    const double rows = std::min(mix.num_requests, max_rows) * share;
    const Forecast one = ForecastOf(mix, rows);
    if (one.rate > best.rate * (best.num_rows > 0 ? kFewerRows : 1)) best = one;
  }
  return best;
}

void GroupTurns::Add(const TreeGroup& group, Mix* mix) {
  const double count = growth_ * (group.num_waiting + group.num_active);
  mix->num_requests += count;
  mix->prefix_tokens += static_cast<double>(groups_.AddToUnion(group)) * chunk_tokens_;
  mix->asked_tokens += count * group.depth * chunk_tokens_;
}

// Predicts the batch that forms if all requests may join. It has all groups if there are slots for
// all requests. Otherwise, it has the groups in the batch and further groups that fill the slots.
GroupTurns::Forecast GroupTurns::ForecastAll(std::span<const TreeGroup> groups) {
  const bool free = tree_->num_active() + tree_->num_waiting() <= limits_.max_rows;
  chosen_.assign(groups.begin(), groups.end());
  std::ranges::stable_sort(chosen_, std::greater{}, &TreeGroup::num_active);
  Mix mix;
  groups_.BeginUnion();
  for (const TreeGroup& group : chosen_) {
    const bool full = !free && mix.num_requests >= limits_.max_rows;
    if (full && group.num_active == 0) break;
    Mix more = mix;
    Add(group, &more);
    const double rows = std::min<double>(more.num_requests, limits_.max_rows);
    const double kv_tokens = more.prefix_tokens + rows * (own_tokens_ + chunk_tokens_);
    if (mix.num_requests > 0 && kv_tokens > static_cast<double>(limits_.max_kv_tokens)) break;
    mix = more;
  }
  Forecast all = ForecastOf(mix, limits_.max_rows);
  // If all may join, prefixes that exceed the memory together are evicted and computed again.
  double prefix_tokens = 0;
  groups_.BeginUnion();
  for (const TreeGroup& group : groups) {
    prefix_tokens += static_cast<double>(groups_.AddToUnion(group)) * chunk_tokens_;
  }
  const auto most = static_cast<double>(limits_.max_kv_tokens);
  evicts_ = prefix_tokens > most;
  all.rate *= std::min(1.0, most / prefix_tokens);
  all.rate *= FactorOf(kTurns) / FactorOf(kAll);
  return all;
}

// A prefix in the batch is in the cache. Requests that share none compute all of their prompts.
int64_t GroupTurns::MissingTokens(const TreeGroup& group) const {
  if (group.depth == 0) return std::llround(group.num_waiting * load_.prompt_tokens());
  if (group.num_active > 0) return 0;
  const int64_t num_tokens = int64_t{group.depth} * chunk_tokens_;
  return std::max<int64_t>(0, num_tokens - waiting_of_(group.first_waiting).cached_tokens);
}

// Sorts `chosen_`, with the group that waits longest first and then the largest groups. If prefixes
// are evicted, the groups whose requests need the least computed, each its share of its prefix, go
// before larger ones. Sets how many of the first groups make the turn with the highest rate of
// tokens.
GroupTurns::Forecast GroupTurns::ChooseTurn(std::span<const TreeGroup> groups) {
  chosen_.clear();
  for (const TreeGroup& group : groups) {
    if (group.num_waiting > 0) chosen_.push_back(group);
  }
  const auto oldest = std::ranges::min_element(chosen_, {}, &TreeGroup::first_arrival);
  std::iter_swap(chosen_.begin(), oldest);
  std::ranges::sort(chosen_.begin() + 1, chosen_.end(), [this](const auto& a, const auto& b) {
    const int64_t missing_a = evicts_ ? MissingTokens(a) * b.num_waiting : 0;
    const int64_t missing_b = evicts_ ? MissingTokens(b) * a.num_waiting : 0;
    if (missing_a != missing_b) return missing_a < missing_b;
    if (a.num_waiting != b.num_waiting) return a.num_waiting > b.num_waiting;
    return a.first_arrival < b.first_arrival;
  });
  Forecast best;
  Mix mix;
  int num_worse = 0;
  num_chosen_ = 1;
  groups_.BeginUnion();
  for (size_t i = 0; i < chosen_.size() && num_worse < kMaxWorse; ++i) {
    Add(chosen_[i], &mix);
    const Forecast one = BestOf(mix, limits_.max_rows);
    if (one.rate > best.rate) {
      best = one;
      num_chosen_ = i + 1;
      num_worse = 0;
    } else {
      ++num_worse;
    }
  }
  return best;
}

// The time for which a request of the batch is served.
double GroupTurns::ServiceS(const Forecast& forecast) const {
  return load_.output_tokens() * forecast.num_rows / forecast.rate;
}

// The number of steps until so many of the batch's rows have ended. Only the mean progress of the
// rows is known. Their progress counts as spread evenly around it.
double GroupTurns::StepsToEnd(const Batch& batch, double num_ends) const {
  const double active = tree_->num_active(), outputs = load_.output_tokens();
  const double progress = std::min(static_cast<double>(batch.output_tokens) / active, outputs);
  const double most = std::min(outputs, 2 * progress);
  const double least = 2 * progress - most;
  return outputs - most + num_ends / active * (most - least);
}

// The time until the batch has shrunk to `rows`. Until then, it keeps its groups.
double GroupTurns::DrainS(const Batch& batch, double rows) const {
  const double active = tree_->num_active();
  const DecodeWork first = WorkOf(tree_->num_active(), batch);
  const double asked = first.asked * rows / active;
  const double unique = std::min(asked, first.unique - (active - rows) * own_tokens_);
  const DecodeWork last{rows, asked, std::max(1.0, unique)};
  const double step_us = (cost_.PredictUs(first) + cost_.PredictUs(last)) / 2;
  return 1e-6 * step_us * FactorOf(kAll) * StepsToEnd(batch, active - rows);
}

// The time until the last of so many requests, those in the batch included, has a slot in a batch
// of the forecast's rows and rate. Each row that ends leaves its slot to a request.
double GroupTurns::LastJoinS(const Batch& batch, const Forecast& forecast,
                             double num_requests) const {
  const double rows = forecast.num_rows, active = tree_->num_active();
  const double num_ends = num_requests - rows;
  if (num_ends < 1) return 0;  // rows are whole, predicted requests are not
  const double outputs = load_.output_tokens();
  if (active > rows) {
    return DrainS(batch, rows) + (num_requests - active) * outputs / forecast.rate;
  }
  // Rows that join from now on need all of their steps.
  const double num_steps =
      num_ends <= active ? StepsToEnd(batch, num_ends) : outputs * std::max(1.0, num_ends / rows);
  return num_steps * rows / forecast.rate;
}

GroupTurns::Waits GroupTurns::WaitsOf(const Batch& batch, const Forecast& forecast,
                                      double num_requests, const Arrivals& arrivals) const {
  const double num_all = num_requests + arrivals.per_s * arrivals.for_s;
  return {LastJoinS(batch, forecast, num_requests),
          LastJoinS(batch, forecast, num_all) - arrivals.for_s};
}

// The time for which the group's first request has waited.
double GroupTurns::WaitedS(const TreeGroup& group, TimeUs now_us) const {
  return 1e-6 * static_cast<double>(now_us - waiting_of_(group.first_waiting).since_us);
}

// The longest wait of the requests that are there, from their arrival on, if turns go on: the
// groups have their turns one after the other, the one that has waited longest first. Needs
// `by_age_`.
double GroupTurns::LongestInTurnsS(const Batch& batch, const Forecast& turn, TimeUs now_us) {
  double longest_s = 0, num_before = tree_->num_active();
  for (const TreeGroup& group : by_age_) {
    longest_s =
        std::max(longest_s, WaitedS(group, now_us) + LastJoinS(batch, turn, num_before + 1));
    num_before += group.num_waiting;
  }
  return longest_s;
}

// Whether turns gain enough, and the longest predicted wait is no longer than with all. In turns,
// the requests that are there wait for the sake of those to come, which may not come. Two cases
// count as equally likely: that requests arrive as before, and that no further request arrives. The
// second has the rows and rates of the first.
bool GroupTurns::BeginsTurns(const Forecast& all, const Forecast& turn, const Waits& with_all,
                             const Waits& in_turns) const {
  return tree_->num_waiting() + tree_->num_active() >= kLeastRequests &&
         turn.rate >= std::max(1 + options_.min_gain, Deviation()) * all.rate &&
         with_all.LongestS() >= kLeastWaitS && in_turns.LongestS() <= with_all.LongestS() &&
         in_turns.MeanS() <= with_all.MeanS();
}

bool GroupTurns::EndsTurns(const Forecast& all, const Forecast& turn, const Waits& with_all,
                           const Waits& in_turns, double longest_with_all_s,
                           double longest_in_turns_s) const {
  if (turn.rate < (1 + options_.min_gain / 2) * all.rate) return true;
  return longest_in_turns_s > std::max(kLeastWaitS, kLongerWait * longest_with_all_s) &&
         in_turns.LongestS() > with_all.LongestS() && in_turns.MeanS() > with_all.MeanS();
}

// The load as if all requests joined. A step's time grows with its rows.
WaitsWithAll::Load GroupTurns::LoadWithAll(const Forecast& all) const {
  const double whole_s = all.num_rows / all.rate;
  const double step_s = std::clamp(1e-6 * cost_.fit().step_us * FactorOf(kAll), 1e-6, whole_s);
  return {.max_rows = all.most_rows,
          .output_steps = std::max(1.0, load_.output_tokens()),
          .step = {step_s, (whole_s - step_s) / all.num_rows}};
}

// Whether the turn's requests raise the rate of the present batch.
bool GroupTurns::TakesNextTurn(const Batch& batch, const Forecast& turn) const {
  const int32_t num_active = tree_->num_active();
  if (num_active == 0) return true;
  const DecodeWork now = WorkOf(num_active, batch);
  double rows = 0, asked = 0, prefix = 0;
  for (size_t i = 0; i < num_chosen_; ++i) {
    rows += chosen_[i].num_waiting;
    asked += static_cast<double>(chosen_[i].num_waiting) * chosen_[i].depth * chunk_tokens_;
    if (chosen_[i].num_active == 0) prefix += static_cast<double>(chosen_[i].depth) * chunk_tokens_;
  }
  const double room = std::max(1.0, static_cast<double>(limits_.max_rows - num_active));
  const double share = std::min({1.0, room / rows, turn.num_rows / rows});
  rows *= share;
  asked = asked * share + rows * own_tokens_;
  const double unique = std::min(asked, prefix + rows * own_tokens_);
  const DecodeWork with{now.num_rows + rows, now.asked + asked, now.unique + unique};
  return RateOf(with, kTurns) >= kNextTurnGain * RateOf(now, kTurns);
}

bool GroupTurns::Begin(const Forecast& turn) {
  restricts_ = true;
  ++turn_;
  turn_rows_ = std::max(1, turn.num_rows);
  opened_.clear();
  for (size_t i = 0; i < num_chosen_; ++i) {
    groups_.AppendRequests(chosen_[i], &opened_);
  }
  return true;
}

void GroupTurns::OpenAll() {
  restricts_ = false;
  opened_.clear();
}

bool GroupTurns::Decide(const Batch& batch, bool joinable, bool urgent, TimeUs now_us) {
  if (!cost_.known() || limits_.max_rows < 2) return false;
  const bool grown = cost_.CacheChange(decided_cache_, load_.prompt_tokens()) >
                     kLargeChange;  // a turn may have more groups and rows
  decided_cache_ = cost_.fit().cache_tokens;
  const std::span<const TreeGroup> groups = groups_.List();
  const double num_requests = tree_->num_waiting() + tree_->num_active();
  double depth = 0;
  for (const TreeGroup& group : groups) {
    depth += static_cast<double>(group.depth) * (group.num_waiting + group.num_active);
  }
  const double outputs = load_.output_tokens();
  own_tokens_ =
      std::max(1.0, load_.prompt_tokens() - depth / num_requests * chunk_tokens_) + outputs / 2;
  growth_ = 1;
  const Forecast present = ForecastAll(groups);
  if (present.rate <= 0) return false;
  const Arrivals arrivals{load_.ArrivalsPerS(now_us), ServiceS(present)};
  growth_ = 1 + arrivals.per_s * arrivals.for_s / num_requests;
  const Forecast all = ForecastAll(groups);
  // A turn is joined by those that arrive while its own requests are served.
  growth_ = 1;
  growth_ += arrivals.per_s * ServiceS(ChooseTurn(groups)) / num_requests;
  const Forecast turn = ChooseTurn(groups);
  const Waits with_all = WaitsOf(batch, all, num_requests, arrivals);
  const Waits in_turns = WaitsOf(batch, turn, num_requests, arrivals);
  by_age_.assign(groups.begin(), groups.end());
  std::erase_if(by_age_, [](const TreeGroup& group) { return group.num_waiting == 0; });
  std::ranges::sort(by_age_, {}, &TreeGroup::first_arrival);
  gain_ = turn.rate / all.rate * FactorOf(kTurns) / FactorOf(kAll);
  if (!restricts_) {
    if (owes() || !BeginsTurns(all, turn, with_all, in_turns)) return false;
    waits_with_all_.Begin(WaitedS(by_age_.front(), now_us), now_us);
    for (int i = 1; i <= tree_->num_active(); ++i) waits_with_all_.AddRow(StepsToEnd(batch, i));
    for (int i = 0; i < tree_->num_waiting(); ++i) waits_with_all_.Arrive(now_us);
    return Begin(turn);
  }
  const WaitsWithAll::Load load = LoadWithAll(all);
  waits_with_all_.Advance(load, now_us);
  waits_with_all_.Include(with_all.present_s);
  if (owes() || EndsTurns(all, turn, with_all, in_turns, waits_with_all_.longest_s(),
                          LongestInTurnsS(batch, turn, now_us))) {
    OpenAll();
    return true;
  }
  if (urgent || grown) return Begin(turn);
  if (joinable && tree_->num_active() > 0) return false;  // else the turn has not begun
  return TakesNextTurn(batch, turn) && Begin(turn);
}

}  // namespace skein
