#include "sched/decode_set/decode_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"

namespace skein {
namespace {

constexpr size_t kMinDecodeSamples = 3;
// The tried shares of arithmetic. A product of two matrices takes the time of its arithmetic or
// that of its reads, whichever is longer. Thus the share lies between that of a device with fast
// arithmetic and that of a device with slow arithmetic.
constexpr std::array<double, 9> kArithmeticShares = {0, 1e-3, 0.01, 0.03, 0.06, 0.1, 0.2, 0.5, 1};
constexpr int kCacheSizesPerDoubling = 4;

double MissedTokens(const DecodeFit& fit, const DecodeWork& work) {
  const double again = std::max(0.0, work.asked - work.unique);
  if (again == 0 || work.unique <= fit.cache_tokens) return 0;
  return again * (1 - fit.cache_tokens / work.unique);
}

// The number of tokens to which the time of attention is proportional.
double AttentionTokens(const DecodeFit& fit, const DecodeWork& work) {
  return std::max(fit.arithmetic_share * work.asked, work.unique + MissedTokens(fit, work));
}

double ChargedRows(const DecodeFit& fit, const DecodeWork& work) {
  return std::max(0.0, work.num_rows - fit.free_rows);
}

// Solves the normal equations of the terms in `subset` by elimination. The result is nullopt if the
// terms are dependent or a coefficient is negative.
struct ThreeTerms {
  std::array<std::array<double, 3>, 3> products{};
  std::array<double, 3> targets{};

  void Add(const std::array<double, 3>& terms) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) products[i][j] += terms[i] * terms[j];
      targets[i] += terms[i];
    }
  }

  std::optional<std::array<double, 3>> Solve(uint32_t subset) const {
    std::array<std::array<double, 4>, 3> rows{};
    for (int i = 0; i < 3; ++i) {
      const bool used = (subset >> i & 1) != 0;
      if (used && products[i][i] <= 0) return std::nullopt;
      const double scale_i = used ? std::sqrt(products[i][i]) : 1;
      for (int j = 0; j < 3; ++j) {
        const bool both = used && (subset >> j & 1) != 0 && products[j][j] > 0;
        rows[i][j] = both ? products[i][j] / (scale_i * std::sqrt(products[j][j])) : 0;
      }
      rows[i][3] = used ? targets[i] / scale_i : 0;
      if (!used) rows[i][i] = 1;
    }
    for (int pivot = 0; pivot < 3; ++pivot) {
      if (std::abs(rows[pivot][pivot]) < 1e-9) return std::nullopt;
      for (int i = 0; i < 3; ++i) {
        if (i == pivot) continue;
        const double factor = rows[i][pivot] / rows[pivot][pivot];
        for (int j = pivot; j < 4; ++j) rows[i][j] -= factor * rows[pivot][j];
      }
    }
    std::array<double, 3> solution{};
    for (int i = 0; i < 3; ++i) {
      if ((subset >> i & 1) == 0) continue;
      solution[i] = rows[i][3] / rows[i][i] / std::sqrt(products[i][i]);
      if (solution[i] < 0) return std::nullopt;
    }
    return solution;
  }
};

double SumOfErrors(const DecodeFit& fit, std::span<const DecodeSample> samples) {
  double sum = 0;
  for (const DecodeSample& sample : samples) {
    const double error = PredictUs(fit, sample.work) / sample.us - 1;
    sum += error * error;
  }
  return sum;
}

// Finds the best coefficients for the shape of `fit`: its cache, its share of arithmetic and its
// free rows.
void Improve(DecodeFit shape, std::span<const DecodeSample> samples, DecodeFit* best,
             double* best_error) {
  ThreeTerms squares;
  for (const DecodeSample& sample : samples) {
    squares.Add({1 / sample.us, ChargedRows(shape, sample.work) / sample.us,
                 AttentionTokens(shape, sample.work) / sample.us});
  }
  for (uint32_t subset = 1; subset < 8; ++subset) {
    const auto solution = squares.Solve(subset);
    if (!solution) continue;
    shape.step_us = (*solution)[0];
    shape.row_us = (*solution)[1];
    shape.token_us = (*solution)[2];
    const double error = SumOfErrors(shape, samples);
    if (error >= *best_error) continue;
    *best = shape;
    *best_error = error;
  }
}

}  // namespace

double PredictUs(const DecodeFit& fit, const DecodeWork& work) {
  return fit.step_us + fit.row_us * ChargedRows(fit, work) +
         fit.token_us * AttentionTokens(fit, work);
}

DecodeFit FitDecodes(std::span<const DecodeSample> samples) {
  if (samples.size() < kMinDecodeSamples) return {};
  double most_rows = 0, most_unique = 0;
  for (const DecodeSample& sample : samples) {
    SKEIN_CHECK(sample.us > 0);
    most_rows = std::max(most_rows, sample.work.num_rows);
    most_unique = std::max(most_unique, sample.work.unique);
  }
  DecodeFit best;
  double best_error = std::numeric_limits<double>::infinity();
  for (const double free_share : {0.0, 0.125, 0.25, 0.5}) {
    for (const double arithmetic_share : kArithmeticShares) {
      DecodeFit shape{.free_rows = free_share * most_rows, .arithmetic_share = arithmetic_share};
      Improve(shape, samples, &best, &best_error);  // the fit without a cache
      // The cache sizes go down from one that holds the largest measured step and therefore shows
      // no misses.
      for (int i = 0; std::exp2(-i / double{kCacheSizesPerDoubling}) * most_unique >= 64; ++i) {
        shape.cache_tokens = std::exp2(-i / double{kCacheSizesPerDoubling}) * most_unique;
        Improve(shape, samples, &best, &best_error);
      }
    }
  }
  return best;
}

}  // namespace skein
