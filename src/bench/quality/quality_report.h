#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/quality/quality.h"
#include "bench/quality/quality_items.h"
#include "bench/quality/quality_summary.h"
#include "bench/quality/reliability_plot.h"
#include "server/json/json.h"

namespace skein {

// A measurement: the runs, their summaries [runs.size()] and each type's chosen run, if any.
struct QualityResults {
  std::vector<QualityRun> runs;
  std::vector<QualitySummary> summaries;
  std::vector<size_t> chosen;  // indices of runs
};

// A table for each type that was asked, with a star at the chosen method, and a legend; then the
// chosen methods by task and what was refused.
std::string QualityTables(const std::vector<QualityItem>& items, const QualityResults& results);

// Everything, also each answer, so that figures can be drawn without asking again.
Json QualityJson(const std::vector<QualityItem>& items, const QualityResults& results);

// The chosen methods whose scores are probabilities.
std::vector<ReliabilityPanel> ReliabilityPanels(const QualityResults& results);

}  // namespace skein
