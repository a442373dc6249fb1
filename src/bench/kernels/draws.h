#pragma once

#include <nlohmann/json.hpp>

#include "kernels/kernels.h"

namespace skein {

// Times draws of one token from a vocabulary of 151,936 tokens, on one thread. Returns medians of
// `num_samples`: [{"logits", "parameters", "us"}]. Logits "peaked" are normally distributed with a
// standard deviation of 2.5, and 40 tokens are far above them, as is usual for a model. Logits
// "flat" lack these 40 tokens. The logits come from the cache.
nlohmann::ordered_json MeasureDraws(const Kernels& kernels, int num_samples);

}  // namespace skein
