#pragma once

#include <string>

#include "base/result.h"
#include "bench/bench_model.h"
#include "model/config/config.h"
#include "sim/device.h"

namespace skein {

// The shape of a decoder, with weights of `weight_type`. kUnsupported for encoders.
Result<SimModelShape> ShapeOf(const ModelConfig& config, const std::string& weight_type);

struct CalibrationOptions {
  BenchModel model;
  int32_t max_tokens = 2048;  // of one step
  int32_t context = 2048;     // length of the context with which attention is measured
  int32_t rounds = 8;         // the means are taken over these rounds (MeanButOutlier)
};

struct CalibrationPoint {
  int32_t rows = 1;
  int32_t new_tokens = 0;  // of each row
  int32_t cached_tokens = 0;
  double measured_us = 0;
  double predicted_us = 0;  // predicted from the description
};

struct Calibration {
  DeviceDescription device;
  std::vector<CalibrationPoint> points;
};

// Describes this processor by the measured times of a model's steps. The efficiency of attention
// follows from the difference between steps with and without a context, that of products from the
// remaining time. Rounds alternate between all sizes. The description is exact for this model's
// shape at the measured sizes; other shapes use the same efficiencies.
Result<Calibration> CalibrateDevice(const CalibrationOptions& options);

}  // namespace skein
