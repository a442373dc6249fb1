#pragma once

#include <string>

#include "base/result.h"
#include "bench/bench_model.h"
#include "model/config/config.h"
#include "sim/device.h"

namespace skein {

// The shape of a decoder, with weights of `weight_type`. Fails for encoders (kUnsupported).
Result<SimModelShape> ShapeOf(const ModelConfig& config, const std::string& weight_type);

struct CalibrationOptions {
  BenchModel model;
  int32_t max_tokens = 2048;  // of a step
  int32_t context = 2048;     // behind which attention is measured
  int32_t rounds = 8;         // the means over these count (MeanButOutlier)
};

struct CalibrationPoint {
  int32_t rows = 1;
  int32_t new_tokens = 0;  // of each row
  int32_t cached_tokens = 0;
  double measured_us = 0;
  double predicted_us = 0;  // by the description
};

struct Calibration {
  DeviceDescription device;
  std::vector<CalibrationPoint> points;
};

// Describes this processor by the times of steps of a model: attention from the difference between
// steps with and without a context, products from what is left, in rounds that alternate between
// all sizes. Exact for this model's shape at the measured sizes; other shapes share its efficiency.
Result<Calibration> CalibrateDevice(const CalibrationOptions& options);

}  // namespace skein
