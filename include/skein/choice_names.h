#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "skein/config.h"

namespace skein {

// The names of the choices, as the command line, messages and records use them.
template <typename Choice>
struct ChoiceName {
  std::string_view name;
  Choice choice;
};

// A list of names for each such enum, in the order in which messages list them.
template <typename Choice>
inline constexpr auto kChoiceNames = nullptr;

template <>
inline constexpr auto kChoiceNames<Order> = std::to_array<ChoiceName<Order>>({
    {"fcfs", Order::kFcfs},
    {"fair", Order::kFair},
    {"srjf", Order::kSrjf},
    {"srjf-calibrated", Order::kSrjfCalibrated},
    {"edf", Order::kEdf},
    {"d-edf", Order::kDeadlineEdf},
    {"s-edf", Order::kSlackEdf},
    {"lpm", Order::kLpm},
    {"dfs-weight", Order::kDfsWeight},
    {"auto", Order::kAuto},
});

template <>
inline constexpr auto kChoiceNames<Batching> = std::to_array<ChoiceName<Batching>>({
    {"single", Batching::kSingle},
    {"saturate", Batching::kSaturate},
    {"budget", Batching::kBudget},
    {"slo-aware", Batching::kSloAware},
    {"auto", Batching::kAuto},
});

template <>
inline constexpr auto kChoiceNames<Sharing> = std::to_array<ChoiceName<Sharing>>({
    {"whole", Sharing::kWhole},
    {"chunked", Sharing::kChunked},
    {"preempt-layer", Sharing::kPreemptLayer},
    {"preempt-op", Sharing::kPreemptOp},
});

template <>
inline constexpr auto kChoiceNames<Granularity> = std::to_array<ChoiceName<Granularity>>({
    {"op-tile", Granularity::kOpTile},
    {"op", Granularity::kOp},
    {"layer", Granularity::kLayer},
    {"chunk", Granularity::kChunk},
    {"none", Granularity::kNone},
});

template <>
inline constexpr auto kChoiceNames<DecodeSteps> = std::to_array<ChoiceName<DecodeSteps>>({
    {"by-cost", DecodeSteps::kByCost},
    {"own", DecodeSteps::kOwn},
    {"mixed", DecodeSteps::kMixed},
});

template <>
inline constexpr auto kChoiceNames<DecodeSet> = std::to_array<ChoiceName<DecodeSet>>({
    {"static", DecodeSet::kStatic},
    {"fill", DecodeSet::kFill},
    {"prefix-homogeneous", DecodeSet::kPrefixHomogeneous},
    {"dynamic", DecodeSet::kDynamic},
});

template <>
inline constexpr auto kChoiceNames<Execution> = std::to_array<ChoiceName<Execution>>({
    {"plain", Execution::kPlain},
    {"hybrid", Execution::kHybrid},
});

template <>
inline constexpr auto kChoiceNames<Retention> = std::to_array<ChoiceName<Retention>>({
    {"all", Retention::kAll},
    {"prefix", Retention::kPrefix},
    {"value", Retention::kValue},
    {"none", Retention::kNone},
});

template <>
inline constexpr auto kChoiceNames<Jct> = std::to_array<ChoiceName<Jct>>({
    {"proxy", Jct::kMissingTokens},
    {"model", Jct::kModel},
});

template <>
inline constexpr auto kChoiceNames<StopRule> = std::to_array<ChoiceName<StopRule>>({
    {"never", StopRule::kNever},
    {"heuristic", StopRule::kHeuristic},
    {"bandit", StopRule::kBandit},
    {"q-learning", StopRule::kQLearning},
    {"model", StopRule::kModel},
});

template <>
inline constexpr auto kChoiceNames<KvStorage> = std::to_array<ChoiceName<KvStorage>>({
    {"paged", KvStorage::kPaged},
    {"contiguous", KvStorage::kContiguous},
});

template <typename Choice>
concept NamedChoice = !std::same_as<decltype(kChoiceNames<Choice>), const std::nullptr_t>;

// REQUIRES: a value of the enum.
template <NamedChoice Choice>
constexpr std::string_view NameOf(Choice choice) {
  for (const auto& [name, value] : kChoiceNames<Choice>) {
    if (value == choice) return name;
  }
  return "";
}

// Returns nullopt if no choice has this name.
template <NamedChoice Choice>
constexpr std::optional<Choice> ChoiceOf(std::string_view text) {
  for (const auto& [name, value] : kChoiceNames<Choice>) {
    if (name == text) return value;
  }
  return std::nullopt;
}

// Returns "fcfs, fair, ...".
template <NamedChoice Choice>
std::string ListOfChoices() {
  std::string list;
  for (const auto& [name, value] : kChoiceNames<Choice>) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

}  // namespace skein
