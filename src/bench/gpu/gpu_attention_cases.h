#pragma once

#include <vector>

#include "bench/gpu/gpu_cases.h"

namespace skein {

// Cases of attention: causal, with windows, to keys on both sides, and with hidden keys.
std::vector<GpuCase> GpuAttentionCases();

}  // namespace skein
