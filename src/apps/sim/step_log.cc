#include "apps/sim/step_log.h"

#include <fmt/format.h>

#include <variant>
#include <vector>

namespace skein {

void StepLog::OnPlan(int64_t /*iteration*/, const StepPlan& plan, TimeUs /*now_us*/) {
  num_decodes_ = num_prompt_tokens_ = 0;
  const auto prompts = [this](const std::vector<PlanRow>& rows) {
    for (const PlanRow& row : rows) num_prompt_tokens_ += std::ssize(row.tokens);
  };
  if (const auto* oneshot = std::get_if<OneShotPlan>(&plan)) prompts(oneshot->rows);
  if (const auto* decode = std::get_if<DecodePlan>(&plan)) num_decodes_ = std::ssize(decode->rows);
  if (const auto* mixed = std::get_if<MixedPlan>(&plan)) {
    prompts(mixed->prefills);
    num_decodes_ = std::ssize(mixed->decodes);
  }
}

void StepLog::OnComplete(const StepResults& /*results*/, TimeUs now_us) {
  file_ << fmt::format("{:.6f} {} {}\n", static_cast<double>(now_us) / 1e6, num_decodes_,
                       num_prompt_tokens_);
}

}  // namespace skein
