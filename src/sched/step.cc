#include "sched/step.h"

#include <algorithm>

#include "base/check.h"

namespace skein {

void Step::Begin(TimeUs now_us) {
  SKEIN_CHECK(!in_flight());
  state = StepState::kPlanned;
  prefills.clear();
  decodes.clear();
  plan = nullptr;
  work = {};
  resumed_us = now_us;
  ran_us = was_suspended_us = 0;
}

void Step::Suspend(TimeUs now_us) {
  SKEIN_CHECK(in_flight());
  state = StepState::kSuspended;
  ran_us = RanUs(now_us);
  suspended_since_us = now_us;
}

void Step::Resume(TimeUs now_us) {
  SKEIN_CHECK(state == StepState::kSuspended);
  state = StepState::kInFlight;
  was_suspended_us = SuspendedUs(now_us);
  resumed_us = now_us;
}

SequenceKey Step::Key() const {
  SequenceKey key = kLastKey;
  ForEachPrefilling([&key](const Sequence* sequence) {
    if (!HasEnded(sequence->state)) key = std::min(key, sequence->key());
  });
  return key;
}

bool Step::IsDead() const {
  const auto is_dead = [](const StepRow& row) {
    const auto has_ended = [](const Sequence* sequence) { return HasEnded(sequence->state); };
    if (row.prefix != nullptr) return std::ranges::all_of(row.prefix->members, has_ended);
    return has_ended(row.sequence);
  };
  return std::ranges::all_of(prefills, is_dead) && std::ranges::all_of(decodes, is_dead);
}

bool Step::KeepsTpot() const {
  return std::ranges::any_of(decodes, [](const StepRow& row) {
    return row.sequence->request->decodes_in_own_steps && !HasEnded(row.sequence->state);
  });
}

RequestRecord* Step::Largest() const {
  RequestRecord* largest = nullptr;
  int32_t most = 0;
  const auto look = [&](const Sequence* sequence, int32_t num_tokens) {
    if (HasEnded(sequence->state) || num_tokens < most) return;
    largest = sequence->request;
    most = num_tokens;
  };
  for (const auto* rows : {&prefills, &decodes}) {
    for (const StepRow& row : *rows) {
      if (row.prefix == nullptr) {
        look(row.sequence, row.num_tokens);
      } else {
        for (const Sequence* member : row.prefix->members) look(member, row.num_tokens);
      }
    }
  }
  return largest;
}

int64_t Step::NumPrefillTokens() const {
  int64_t num_tokens = 0;
  for (const StepRow& row : prefills) num_tokens += row.num_tokens;
  return num_tokens;
}

}  // namespace skein
