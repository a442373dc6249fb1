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

// A measurement: the runs, a summary for each run, and the chosen run of each type if there is one.
struct QualityResults {
  std::vector<QualityRun> runs;
  std::vector<QualitySummary> summaries;
  std::vector<size_t> chosen;  // indices in runs
};

// Makes a table for each type that was asked, with a star at the chosen method, and a legend. The
// chosen methods by task and the refusals follow.
std::string QualityTables(const std::vector<QualityItem>& items, const QualityResults& results);

// Makes JSON with everything, including each answer, so that figures can be drawn without asking
// again.
Json QualityJson(const std::vector<QualityItem>& items, const QualityResults& results);

// Makes a diagram for each chosen method whose scores are probabilities.
std::vector<ReliabilityPanel> ReliabilityPanels(const QualityResults& results);

}  // namespace skein
