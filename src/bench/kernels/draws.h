#pragma once

#include <nlohmann/json.hpp>

#include "kernels/kernels.h"

namespace skein {

// Times of draws of one token from a vocabulary of 151,936, on one thread, medians of
// `num_samples`: [{"logits", "parameters", "us"}]. Logits "peaked": normal with a deviation of 2.5,
// and 40 tokens high above them, as a model's mostly are; "flat": without those. They come from the
// cache.
nlohmann::ordered_json MeasureDraws(const Kernels& kernels, int num_samples);

}  // namespace skein
