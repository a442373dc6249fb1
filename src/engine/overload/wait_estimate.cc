#include "engine/overload/wait_estimate.h"

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

constexpr double kMaxUs = 1e15;

TimeUs Bounded(double us) { return std::llround(std::clamp(us, 0.0, kMaxUs)); }

}  // namespace

void WaitEstimate::Rate::Observe(int64_t num_tokens, TimeUs step_us) {
  const double weight = std::exp(-static_cast<double>(step_us) / kMemoryUs);
  tokens = weight * tokens + static_cast<double>(num_tokens);
  busy_us = weight * busy_us + static_cast<double>(step_us);
}

void WaitEstimate::Observe(const ClassTokens& done, const ClassTokens& waiting, TimeUs busy_us) {
  if (busy_us <= 0) return;
  if (done.prompts() > 0 || waiting.prompts() > 0) all_.Observe(done.prompts(), busy_us);
  if (done.oneshot > 0 || waiting.oneshot > 0) oneshot_.Observe(done.oneshot, busy_us);
  if (done.decode > 0 || waiting.decode > 0) decode_.Observe(done.decode, busy_us);
}

// A measured rate needs at least one token, and says little if it was measured for less than a
// step.
double WaitEstimate::UsPerToken() const {
  return all_.tokens >= 1 ? all_.busy_us / all_.tokens : first_us_per_token_;
}

double WaitEstimate::UsPerToken(const Rate& of_class) const {
  const double common = UsPerToken();
  if (common == 0) return 0;
  return (of_class.busy_us + kPriorUs) / (of_class.tokens + kPriorUs / common);
}

TimeUs WaitEstimate::WaitOf(ExecutionClass of_class, const ClassTokens& waiting) const {
  const double all_us = UsPerToken() * static_cast<double>(waiting.prompts());
  const double own_us = UsPerToken(RateOf(of_class)) * static_cast<double>(waiting.Of(of_class));
  const TimeUs prompts_us = Bounded(std::max(all_us, own_us));
  if (of_class == ExecutionClass::kOneShot) return prompts_us;
  return std::max(prompts_us, RunOf(of_class, waiting.budget) / num_slots_);
}

TimeUs WaitEstimate::PromptUs(int64_t num_tokens) const {
  return Bounded(UsPerToken() * static_cast<double>(num_tokens));
}

void WaitEstimate::ObserveRun(const Run& run) {
  if (run.size <= 0 || run.us <= 0) return;
  if (!run.complete && run.us <= RunOf(run.execution_class, run.size)) return;
  const bool oneshot = run.execution_class == ExecutionClass::kOneShot;
  Runs& runs = oneshot ? oneshot_runs_ : decode_runs_;
  runs.size = kRunsKept * runs.size + static_cast<double>(run.size);
  runs.us = kRunsKept * runs.us + static_cast<double>(run.us);
  if (!run.complete) return;
  runs.complete_size = kRunsKept * runs.complete_size + static_cast<double>(run.size);
  runs.num_tokens = kRunsKept * runs.num_tokens + static_cast<double>(run.num_tokens);
}

void WaitEstimate::ObserveToken(TimeUs us, TimeUs now_us) {
  const double kept = std::exp(-static_cast<double>(now_us - gap_at_us_) / kGapsMemoryUs);
  gap_at_us_ = now_us;
  num_gaps_ = kept * num_gaps_ + 1;
  gaps_us_ = kept * gaps_us_ + static_cast<double>(us);
}

TimeUs WaitEstimate::RunOf(ExecutionClass of_class, int64_t size) const {
  const Runs& runs = RunsOf(of_class);
  const double us_per_size = runs.size > 0 ? runs.us / runs.size : 0;
  double us_per_token = 0;
  const bool measured = num_gaps_ > 0 && runs.complete_size > 0;
  if (of_class == ExecutionClass::kDecode && measured) {
    us_per_token = runs.num_tokens / runs.complete_size * gaps_us_ / num_gaps_;
  }
  return Bounded(std::max(us_per_size, us_per_token) * static_cast<double>(size));
}

}  // namespace skein
