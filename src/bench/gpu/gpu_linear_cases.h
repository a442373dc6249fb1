#pragma once

#include <vector>

#include "bench/gpu/gpu_cases.h"

namespace skein {

// Cases of linear layers: gates, the convolution and its states, norms, and the delta rule.
std::vector<GpuCase> GpuLinearCases();

}  // namespace skein
