#pragma once

#include <span>

#include "skein/config.h"

namespace skein {

// The keys and values that a step of decodes reads, in tokens of one layer.
struct DecodeWork {
  double num_rows = 0;
  double asked = 0;   // tokens that the rows attend to, summed
  double unique = 0;  // each token counted once; at most `asked`
};

struct DecodeSample {
  DecodeWork work;
  double us = 0;
};

// The time of a step with decodes alone, by the formula of DecodeFit.
double PredictUs(const DecodeFit& fit, const DecodeWork& work);

// The fit with the least sum of squared relative errors, over a grid of cache sizes, shares of
// arithmetic and free rows. The fit is not known without samples of at least three different times.
// REQUIRES: every time is above 0. Costs a few milliseconds.
DecodeFit FitDecodes(std::span<const DecodeSample> samples);

}  // namespace skein
