#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/quality/quality_metrics.h"

namespace skein {

// One reliability diagram: accuracy over confidence, before and after calibration.
struct ReliabilityPanel {
  std::string title;
  std::vector<ReliabilityBin> before;  // [kReliabilityBins]
  std::vector<ReliabilityBin> after;   // as above; its counts are drawn as bars
};

// An SVG document with the panels side by side: axes with ticks and labels, the diagonal, one line
// for each state and the counts at the foot. Texts are escaped.
std::string ReliabilitySvg(std::span<const ReliabilityPanel> panels);

}  // namespace skein
