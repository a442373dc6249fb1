#pragma once

#include <vector>

#include "bench/gpu/gpu_cases.h"

namespace skein {

// Cases of attention: causal, with windows, to keys on both sides, with hidden keys,
// sinks, caps and terms, and of shared prefixes.
std::vector<GpuCase> GpuAttentionCases();

}  // namespace skein
