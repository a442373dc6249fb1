#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "sched/record/observer.h"
#include "skein/config.h"

namespace skein {

// Has the stop rule continue from the table in that file, if there is one. Fails where no rule
// learns by `config`, so that none would be written there either.
Status ReadStopTable(const std::string& path, SchedulerConfig* config);

// Writes what the stop rule of the decode set has learned to a file when the scheduler ends;
// nothing where it learned nothing. The file is replaced when PATH.tmp is whole, so what was
// learned before is never lost. A failure is a warning on stderr: the answers are out already.
class StopTableWriter final : public SchedulerObserver {
 public:
  explicit StopTableWriter(std::string path) : path_(std::move(path)) {}

  void OnEnd(const StopTable* learned) override;

 private:
  const std::string path_;
};

}  // namespace skein
