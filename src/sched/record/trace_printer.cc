#include "sched/record/trace_printer.h"

#include <spdlog/fmt/fmt.h>

#include <string>

namespace skein {
namespace {

// The name of a sequence: R3, its second further sample R3.2, or the second shared prefix T1.
std::string Name(SequenceId sequence) {
  if (RequestOf(sequence) >= kFirstSharedPrefixId) {
    return fmt::format("T{}", RequestOf(sequence) - kFirstSharedPrefixId);
  }
  const int32_t sample = SampleOf(sequence);
  return sample == 0 ? fmt::format("R{}", RequestOf(sequence))
                     : fmt::format("R{}.{}", RequestOf(sequence), sample);
}

std::string DecodeRows(const std::vector<PlanRow>& rows) {
  std::string text = "decode";
  for (const PlanRow& row : rows) text += fmt::format(" {}@{}", Name(row.sequence), row.begin);
  return text;
}

std::string PrefillRows(const std::vector<PlanRow>& rows) {
  std::string text = "prefill";
  for (const PlanRow& row : rows) {
    text += fmt::format(" {}[{},{})", Name(row.sequence), row.begin,
                        row.begin + static_cast<int64_t>(row.tokens.size()));
    if (row.parent != 0) text += "<" + Name(row.parent);
  }
  return text;
}

}  // namespace

void TracePrinter::OnPlan(int64_t iteration, const StepPlan& plan, TimeUs) {
  std::string line = fmt::format("iteration {}: ", iteration);
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) {
    line += PrefillRows(oneshot->rows);
  } else if (const auto* decode = std::get_if<DecodePlan>(&plan)) {
    line += DecodeRows(decode->rows);
  } else {
    const auto& mixed = std::get<MixedPlan>(plan);
    if (!mixed.decodes.empty()) line += DecodeRows(mixed.decodes) + " | ";
    line += PrefillRows(mixed.prefills);
  }
  *out_ << line << '\n' << std::flush;
}

void TracePrinter::OnPreempt(int64_t iteration, TimeUs) {
  *out_ << fmt::format("iteration {} stops\n", iteration) << std::flush;
}

void TracePrinter::OnResume(int64_t iteration, TimeUs) {
  *out_ << fmt::format("iteration {} goes on\n", iteration) << std::flush;
}

}  // namespace skein
