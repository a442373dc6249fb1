#include "sched/decode_set/stop_constants.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

namespace skein {
namespace {

// A constant: a member of StopOptions, as a number.
struct Constant {
  std::string_view name;
  double low, high;
  bool whole;
  double (*get)(const StopOptions& options);
  void (*set)(StopOptions* options, double value);
};

template <auto Member>
constexpr Constant MakeConstant(std::string_view name, double low, double high) {
  using Value = std::remove_cvref_t<decltype(std::declval<StopOptions>().*Member)>;
  return {name,
          low,
          high,
          std::is_integral_v<Value>,
          [](const StopOptions& options) { return static_cast<double>(options.*Member); },
          [](StopOptions* options, double value) { options->*Member = static_cast<Value>(value); }};
}

constexpr double kMaxTokens = 1 << 30;
constexpr std::array<Constant, 13> kConstants = {
    MakeConstant<&StopOptions::max_lost_tokens>("max-lost", 0, kMaxTokens),
    MakeConstant<&StopOptions::small_batch>("small-batch", 0, kMaxTokens),
    MakeConstant<&StopOptions::max_lost_tokens_small>("max-lost-small", 0, kMaxTokens),
    MakeConstant<&StopOptions::max_lost_tokens_peers>("max-lost-peers", 0, kMaxTokens),
    MakeConstant<&StopOptions::max_loss>("max-loss", 0, 1),
    MakeConstant<&StopOptions::min_gain>("min-gain", 0, 10),
    MakeConstant<&StopOptions::exploration>("exploration", 0, 100),
    MakeConstant<&StopOptions::alpha>("alpha", 0, 1),
    MakeConstant<&StopOptions::gamma>("gamma", 0, 1),
    MakeConstant<&StopOptions::epsilon_start>("epsilon-start", 0, 1),
    MakeConstant<&StopOptions::epsilon_decay>("epsilon-decay", 0, 1),
    MakeConstant<&StopOptions::epsilon_floor>("epsilon-floor", 0, 1),
    MakeConstant<&StopOptions::learn>("learn", 0, 1)};

Status Refuse(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message), "stop_constants"};
}

Status SetConstant(std::string_view text, StopOptions* options) {
  const size_t equals = std::ranges::find(text, '=') - text.begin();
  const std::string_view name = text.substr(0, equals);
  const auto constant = std::ranges::find(kConstants, name, &Constant::name);
  if (constant == kConstants.end()) {
    std::string known;
    for (const Constant& one : kConstants) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
    }
    return Refuse(fmt::format("stop_constants has '{}', must be name=value of: {}", text, known));
  }
  const std::string_view number = text.substr(std::min(equals + 1, text.size()));
  double value = -1;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), value);
  const bool read = error == std::errc() && end == number.end();
  if (!read || !(value >= constant->low && value <= constant->high) ||
      (constant->whole && value != std::floor(value))) {
    return Refuse(fmt::format("stop_constants: {} is '{}', must be {} in [{}, {}]", name, number,
                              constant->whole ? "an integer" : "a number", constant->low,
                              constant->high));
  }
  constant->set(options, value);
  return Status::Ok();
}

}  // namespace

Status SetStopConstants(std::string_view text, StopOptions* options) {
  while (!text.empty()) {
    const size_t comma = std::ranges::find(text, ',') - text.begin();
    SKEIN_RETURN_IF_ERROR(SetConstant(text.substr(0, comma), options));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return Status::Ok();
}

std::string StopConstants(const StopOptions& options) {
  std::string text;
  for (const Constant& constant : kConstants) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", constant.name, constant.get(options));
  }
  return text;
}

}  // namespace skein
