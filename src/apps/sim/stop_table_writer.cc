#include "apps/sim/stop_table_writer.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "apps/read_file.h"
#include "sched/config.h"
#include "sched/decode_set/stop_table.h"

namespace skein {

Status ReadStopTable(const std::string& path, SchedulerConfig* config) {
  SKEIN_RETURN_IF_ERROR(CheckStopRuleLearns(*config));
  if (!std::filesystem::exists(path)) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  Result<StopTable> table = StopTable::FromJson(json);
  if (!table.ok()) {
    return {StatusCode::kInvalidArgument, "stop_table: " + table.status().message(), "stop_table"};
  }
  config->prefix_groups.learned = std::make_shared<const StopTable>(std::move(table).value());
  return Status::Ok();
}

void StopTableWriter::OnEnd(const StopTable* learned) {
  if (learned == nullptr || learned->num_batches == 0) return;
  const std::string temporary = path_ + ".tmp";
  std::ofstream file(temporary);
  file << learned->ToJson();
  file.close();
  if (!file) {
    std::fprintf(stderr, "--stop-table: cannot write %s\n", temporary.c_str());
  } else if (std::rename(temporary.c_str(), path_.c_str()) != 0) {
    std::fprintf(stderr, "--stop-table: cannot replace %s\n", path_.c_str());
  }
}

}  // namespace skein
