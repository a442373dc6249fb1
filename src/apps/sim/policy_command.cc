#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "apps/commands.h"
#include "io/json_file.h"
#include "sched/decode_set/stop_table.h"
#include "skein/choice_names.h"

namespace skein {
namespace {

constexpr size_t kMaxTableBytes = size_t{16} << 20;

// A bin as text: its least and its greatest value. `next` is the least value of the next bin; 0:
// none.
std::string Range(int32_t least, int32_t next) {
  if (next == 0) return fmt::format("{}+", least);
  return next == least + 1 ? fmt::format("{}", least) : fmt::format("{}-{}", least, next - 1);
}

std::string SizeRange(int32_t least) {
  constexpr int32_t kOpen = 1 << (StopState::kSizeBins - 2);
  return Range(least, least == kOpen ? 0 : std::max(2 * least, 1));
}

std::string LossRange(int32_t least) {
  for (const int32_t bound : StopState::kLossBounds) {
    if (bound > least) return Range(least, bound);
  }
  return Range(least, 0);
}

// Whether a rule that only follows the table (learn=0) adds a request. It does so if one of the two
// values is unknown.
bool PrefersToAdd(const StopTable::Cell& add, const StopTable::Cell& stop) {
  return add.count == 0 || stop.count == 0 || add.value >= stop.value;
}

void Print(const StopTable& table) {
  fmt::print("{}: {} batches, {} decisions, best {:.1f} tokens/s\n\n", NameOf(table.rule),
             table.num_batches, table.num_decisions, table.best_reward);
  fmt::print("{:>14}{:>13}{:>14}{:>10}{:>12}{:>10}{:>12}  {}\n", "batch", "lost tokens", "peers",
             "adds", "value", "stops", "value", "prefers");
  for (int32_t index = 0; index < StopState::kNumStates; ++index) {
    const StopTable::Cell& add = table.cells[index][StopTable::kAdd];
    const StopTable::Cell& stop = table.cells[index][StopTable::kStop];
    if (add.count + stop.count == 0) continue;
    const StopQuestion least = StopState(index).least();
    fmt::print("{:>14}{:>13}{:>14}{:>10}{:>12.1f}{:>10}{:>12.1f}  {}\n",
               SizeRange(least.batch_size), LossRange(least.lost_tokens),
               SizeRange(least.num_peers), add.count, add.value, stop.count, stop.value,
               PrefersToAdd(add, stop) ? "add" : "stop");
  }
}

Status Show(const std::string& path) {
  SKEIN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTableBytes));
  const Result<StopTable> table = StopTable::FromJson(text);
  if (!table.ok()) {
    return {table.status().code(), path + ": " + table.status().message()};
  }
  Print(table.value());
  return Status::Ok();
}

}  // namespace

void AddPolicyCommand(CLI::App* app, int* exit_status) {
  CLI::App* policy = app->add_subcommand("policy", "Learned policies");
  policy->require_subcommand(1);
  CLI::App* show =
      policy->add_subcommand("show", "Print what a stop policy of decode batches has learned");
  auto path = std::make_shared<std::string>();
  show->add_option("file", *path, "A table that --stop-table wrote")->required();
  show->callback([path, exit_status] {
    const Status status = Show(*path);
    if (status.ok()) return;
    std::fprintf(stderr, "skein policy show: %s\n", status.message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
