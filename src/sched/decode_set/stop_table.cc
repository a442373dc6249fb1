#include "sched/decode_set/stop_table.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "skein/choice_names.h"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

int32_t SizeBin(int32_t size) {
  const int width = std::bit_width(static_cast<uint32_t>(std::max(size, 0)));
  return std::min<int32_t>(width, StopState::kSizeBins - 1);
}

int32_t LeastOfSizeBin(int32_t bin) { return bin == 0 ? 0 : 1 << (bin - 1); }

Status Wrong(const std::string& field, const std::string& allowed) {
  return {StatusCode::kInvalidArgument, fmt::format("'{}' must be {}", field, allowed), field};
}

// Doubles hold all integers up to this number, and sums of counts stay far from overflow.
constexpr int64_t kMostCount = int64_t{1} << 53;

Result<int64_t> ReadCount(const Json& json, const char* field, const std::string& where) {
  const auto found = json.find(field);
  const bool good = found != json.end() && found->is_number_integer() &&
                    found->get<int64_t>() >= 0 && found->get<int64_t>() <= kMostCount;
  if (!good) return Wrong(where + field, fmt::format("an integer in [0, {}]", kMostCount));
  return found->get<int64_t>();
}

Result<double> ReadNumber(const Json& json, const char* field, const std::string& where,
                          double most) {
  const auto found = json.find(field);
  const bool good = found != json.end() && found->is_number() && found->get<double>() >= 0 &&
                    found->get<double>() <= most;
  if (!good) return Wrong(where + field, fmt::format("a number in [0, {}]", most));
  return found->get<double>();
}

constexpr double kMostReward = 1e15;

Status ReadCell(const Json& state, const char* action, const std::string& where,
                StopTable::Cell* cell) {
  const auto found = state.find(action);
  const std::string name = where + action;
  if (found == state.end() || !found->is_object()) return Wrong(name, "an object");
  SKEIN_ASSIGN_OR_RETURN(cell->count, ReadCount(*found, "count", name + "."));
  SKEIN_ASSIGN_OR_RETURN(cell->value, ReadNumber(*found, "value", name + ".", kMostReward));
  if (cell->count == 0 && cell->value != 0) return Wrong(name + ".value", "0 where count is 0");
  return Status::Ok();
}

Status ReadState(const Json& json, const std::string& where, StopTable* table) {
  if (!json.is_object()) return Wrong(where, "an object");
  const std::string prefix = where + ".";
  SKEIN_ASSIGN_OR_RETURN(const int64_t batch, ReadCount(json, "batch", prefix));
  SKEIN_ASSIGN_OR_RETURN(const int64_t lost, ReadCount(json, "lost_tokens", prefix));
  SKEIN_ASSIGN_OR_RETURN(const int64_t peers, ReadCount(json, "peers", prefix));
  constexpr int64_t kMost = 1 << 30;
  const StopState state({.batch_size = static_cast<int32_t>(std::min(batch, kMost)),
                         .lost_tokens = static_cast<int32_t>(std::min(lost, kMost)),
                         .num_peers = static_cast<int32_t>(std::min(peers, kMost))});
  const StopQuestion least = state.least();
  if (least.batch_size != batch || least.lost_tokens != lost || least.num_peers != peers) {
    return Wrong(where, fmt::format("the least of a state: batch and peers 0 or a power of two up "
                                    "to {}, lost_tokens one of {}",
                                    LeastOfSizeBin(StopState::kSizeBins - 1),
                                    fmt::join(StopState::kLossBounds, ", ")));
  }
  StopTable::Cells& cells = table->cells[state.index()];
  if (cells[0].count + cells[1].count > 0) return Wrong(where, "another state than those before");
  SKEIN_RETURN_IF_ERROR(ReadCell(json, "add", prefix, &cells[StopTable::kAdd]));
  return ReadCell(json, "stop", prefix, &cells[StopTable::kStop]);
}

Json CellJson(const StopTable::Cell& cell) {
  return {{"count", cell.count}, {"value", cell.value}};
}

}  // namespace

StopState::StopState(const StopQuestion& question) {
  const auto above = std::ranges::upper_bound(kLossBounds, std::max(question.lost_tokens, 0));
  const auto loss = static_cast<int32_t>(above - kLossBounds.begin()) - 1;
  index_ =
      (SizeBin(question.batch_size) * static_cast<int32_t>(kLossBounds.size()) + loss) * kSizeBins +
      SizeBin(question.num_peers);
}

StopQuestion StopState::least() const {
  constexpr auto kNumLosses = static_cast<int32_t>(kLossBounds.size());
  return {.batch_size = LeastOfSizeBin(index_ / kSizeBins / kNumLosses),
          .lost_tokens = kLossBounds[index_ / kSizeBins % kNumLosses],
          .num_peers = LeastOfSizeBin(index_ % kSizeBins)};
}

std::string StopTable::ToJson() const {
  Json json;
  json["policy"] = NameOf(rule);
  json["batches"] = num_batches;
  json["decisions"] = num_decisions;
  json["best_reward"] = best_reward;
  Json states = Json::array();
  for (int32_t index = 0; index < StopState::kNumStates; ++index) {
    const Cells& both = cells[index];
    if (both[kAdd].count + both[kStop].count == 0) continue;
    const StopQuestion least = StopState(index).least();
    states.push_back({{"batch", least.batch_size},
                      {"lost_tokens", least.lost_tokens},
                      {"peers", least.num_peers},
                      {"add", CellJson(both[kAdd])},
                      {"stop", CellJson(both[kStop])}});
  }
  json["states"] = std::move(states);
  return json.dump(1) + "\n";
}

Result<StopTable> StopTable::FromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return Status(StatusCode::kInvalidArgument, "a stop policy's table must be a JSON object");
  }
  StopTable table;
  const auto policy = json.find("policy");
  if (policy == json.end() || !policy->is_string()) return Wrong("policy", "a string");
  const auto rule = ChoiceOf<StopRule>(policy->get<std::string>());
  if (!rule || !Learns(*rule)) return Wrong("policy", "'bandit' or 'q-learning'");
  table.rule = *rule;
  SKEIN_ASSIGN_OR_RETURN(table.num_batches, ReadCount(json, "batches", ""));
  SKEIN_ASSIGN_OR_RETURN(table.num_decisions, ReadCount(json, "decisions", ""));
  SKEIN_ASSIGN_OR_RETURN(table.best_reward, ReadNumber(json, "best_reward", "", kMostReward));
  const auto states = json.find("states");
  if (states == json.end() || !states->is_array()) return Wrong("states", "an array");
  for (size_t i = 0; i < states->size(); ++i) {
    SKEIN_RETURN_IF_ERROR(ReadState((*states)[i], fmt::format("states[{}]", i), &table));
  }
  return table;
}

}  // namespace skein
