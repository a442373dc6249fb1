#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "sched/record/observer.h"
#include "skein/config.h"

namespace skein {

// Lets the stop rule continue from the table in a file, if the file exists. Fails if no rule learns
// with `config`, since then no table would be written either.
Status ReadStopTable(const std::string& path, SchedulerConfig* config);

// Writes the table that the stop rule of the decode set has learned to a file when the scheduler
// ends. Writes nothing if the rule learned nothing. The file is replaced only when PATH.tmp is
// complete, so that an earlier table is never lost. A failure is only a warning on stderr: the
// answers have been given already.
class StopTableWriter final : public SchedulerObserver {
 public:
  explicit StopTableWriter(std::string path) : path_(std::move(path)) {}

  void OnEnd(const StopTable* learned) override;

 private:
  const std::string path_;
};

}  // namespace skein
