#include "sched/preemption/suspended_steps.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace skein {

SuspendedSteps::SuspendedSteps(const SchedulerContext& context, Ranks* ranks,
                               SharedPrefixes* prefixes, Admission* admission)
    : config_(*context.config),
      cost_(context.cost),
      table_(context.table),
      stats_(context.stats),
      ranks_(ranks),
      prefixes_(prefixes),
      admission_(admission) {}

void SuspendedSteps::Suspend(Step* step, TimeUs now_us) {
  step->Suspend(now_us);
  steps_.push_back(std::move(*step));
  *step = TakeFree(now_us);
  const Step& suspended = steps_.back();
  const TimeUs left_us = std::llround(cost_->PredictUs(suspended.work)) - suspended.ran_us;
  ranks_->Release(suspended, std::max<TimeUs>(0, left_us), now_us);
  prefixes_->Mark(steps_, {});
  ++stats_->steps_preempted;
}

void SuspendedSteps::Resume(const Step* suspended, Step* step, TimeUs now_us) {
  SKEIN_CHECK(step->empty());
  const auto taken = steps_.begin() + (suspended - steps_.data());
  free_.push_back(std::exchange(*step, std::move(*taken)));
  steps_.erase(taken);
  step->Resume(now_us);
  prefixes_->Mark(steps_, step->prefills);
  ranks_->Hold(*step);
  ++stats_->steps_resumed;
}

void SuspendedSteps::Drop(Step* step) {
  step->state = StepState::kFinished;
  Step dropped = std::exchange(*step, TakeFree(step->resumed_us));
  Undo(dropped, {});
  free_.push_back(std::move(dropped));
  ++stats_->steps_dropped;
}

void SuspendedSteps::DropAt(size_t index, std::span<const StepRow> current) {
  Step dropped = std::move(steps_[index]);
  steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(index));
  Undo(dropped, current);
  free_.push_back(std::move(dropped));
  ++stats_->steps_dropped;
}

void SuspendedSteps::DropDead() {
  for (size_t i = 0; i < steps_.size();) {
    if (steps_[i].IsDead()) {
      DropAt(i, {});
    } else {
      ++i;
    }
  }
}

void SuspendedSteps::MakeRoomFor(Step* step, TimeUs now_us) {
  const int32_t most = config_.preemption.max_suspended_steps + (step->prefills.empty() ? 1 : 0);
  while (std::ssize(steps_) > most) {
    const auto last = std::ranges::max_element(
        steps_, {}, [&](const Step& suspended) { return KeyOf(suspended, now_us); });
    const TimeUs suspended_us = last->SuspendedUs(now_us);
    last->ForEachPrefilling(
        [suspended_us](Sequence* sequence) { sequence->request->suspended_us = suspended_us; });
    DropAt(last - steps_.begin(), step->prefills);
  }
  step->ForEachPrefilling([step](const Sequence* sequence) {
    step->was_suspended_us = std::max(step->was_suspended_us, sequence->request->suspended_us);
  });
}

bool SuspendedSteps::Contains(int64_t step_id) const {
  return std::ranges::find(steps_, step_id, &Step::id) != steps_.end();
}

SequenceKey SuspendedSteps::KeyOf(const Step& step, TimeUs now_us) const {
  return step.SuspendedUs(now_us) >= config_.preemption.max_suspended_us ? Step::kFirstKey
                                                                         : step.Key();
}

const Step* SuspendedSteps::First(TimeUs now_us) const {
  const auto first =
      std::ranges::min_element(steps_, {}, [&](const Step& step) { return KeyOf(step, now_us); });
  return first == steps_.end() ? nullptr : &*first;
}

const Step* SuspendedSteps::KeepingTpot() const {
  const auto found = std::ranges::find_if(steps_, &Step::KeepsTpot);
  return found == steps_.end() ? nullptr : &*found;
}

std::optional<TimeUs> SuspendedSteps::NextBoundUs() const {
  std::optional<TimeUs> bound_us;
  for (const Step& step : steps_) {
    const TimeUs end_us =
        step.suspended_since_us + config_.preemption.max_suspended_us - step.was_suspended_us;
    bound_us = std::min(bound_us.value_or(end_us), end_us);
  }
  return bound_us;
}

Step SuspendedSteps::TakeFree(TimeUs now_us) {
  if (free_.empty()) return {};
  Step step = std::move(free_.back());
  free_.pop_back();
  step.Begin(now_us);
  return step;
}

// The requests of a dropped step continue from their tokens computed before that step. `current`:
// the rows of the step that is being planned. REQUIRES: the step is neither in flight nor among the
// suspended ones.
void SuspendedSteps::Undo(const Step& step, std::span<const StepRow> current) {
  for (const auto* rows : {&step.prefills, &step.decodes}) {
    for (const StepRow& row : *rows) {
      if (row.prefix != nullptr) {
        row.prefix->num_planned = 0;
      } else {
        row.sequence->in_step = false;
      }
    }
  }
  prefixes_->Mark(steps_, current);
  ranks_->ReleaseInRound(step);
  // The sequences that begin anew are of two kinds. The first are members of the step's prefixes,
  // in this step or admitted for a later one: they continue tokens that the step was to compute.
  // The second are sequences whose state was overwritten.
  std::vector<Sequence*> begin_anew;
  std::vector<SharedPrefix*> prefixes;
  for (const StepRow& row : step.prefills) {
    if (row.prefix == nullptr || row.prefix->ready()) continue;
    prefixes.push_back(row.prefix);
    std::ranges::copy_if(row.prefix->members, std::back_inserter(begin_anew),
                         [](const Sequence* s) {
                           return s->holds_shared_prefix && s->state == SequenceState::kPrefilling;
                         });
  }
  for (const auto* rows : {&step.prefills, &step.decodes}) {
    for (const StepRow& row : *rows) {
      if (row.prefix != nullptr) continue;
      if (HasEnded(row.sequence->state)) {
        admission_->ReleaseBlocks(row.sequence);
      } else if (!admission_->AbandonRow(row.sequence)) {
        begin_anew.push_back(row.sequence);
      }
    }
  }
  for (Sequence* sequence : begin_anew) {
    if (IsRunning(sequence->state)) admission_->Preempt(sequence);
  }
  for (SharedPrefix* prefix : prefixes) prefixes_->Abandon(prefix);
}

void SuspendedSteps::CheckIntegrity(const Step& current) const {
  SKEIN_CHECK(std::ssize(steps_) <= config_.preemption.max_suspended_steps + 1);
  size_t num_rows = 0, num_in_step = 0;
  const auto count = [&num_rows](const Step& step) {
    for (const auto* rows : {&step.prefills, &step.decodes}) {
      for (const StepRow& row : *rows) {
        num_rows += row.prefix == nullptr;
        SKEIN_CHECK(row.prefix != nullptr ? row.prefix->in_step : row.sequence->in_step);
      }
    }
  };
  for (const Step& step : steps_) count(step);
  if (current.in_flight()) count(current);
  for (const auto& [id, request] : table_->requests()) {
    for (const auto& sequence : request->sequences) num_in_step += sequence->in_step;
  }
  SKEIN_CHECK(num_rows == num_in_step);
}

}  // namespace skein
