#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/quality/quality_metrics.h"

namespace skein {

// One reliability diagram: accuracy by confidence, before and after calibration.
struct ReliabilityPanel {
  std::string title;
  std::vector<ReliabilityBin> before;  // [kReliabilityBins]
  std::vector<ReliabilityBin> after;   // [kReliabilityBins]; its counts are drawn as bars
};

// An SVG document with the panels side by side. Each panel has axes with ticks and labels, the
// diagonal, one line before and one after calibration, and the counts at the bottom. Texts are
// escaped.
std::string ReliabilitySvg(std::span<const ReliabilityPanel> panels);

}  // namespace skein
