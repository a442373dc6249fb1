#pragma once

#include <cstdint>

#include "model/config/config.h"
#include "model/forward/batch.h"

namespace skein::cuda {

// How far the host runs ahead of the device. The host puts a mark behind every few operators, and
// waits for the oldest mark when there are kMarksAhead:
//
//   | operators | mark | operators | mark | operators | mark |
//   ^ the device may be here                                 ^ the host waits
//
// So a signal is honoured within kMarksAhead times OperatorsPerMark operators. Fewer marks would
// let a short operator end before the host gives the next one.
inline constexpr int32_t kMarksAhead = 3;
// The work that the device has ahead of it, unless kMarksAhead operators take longer.
inline constexpr int64_t kAheadUs = 500;

// The operators of a batch that lie between two marks, so that all marks together have about
// `ahead_us` of work: at least 1, at most kMostOperatorsPerMark. The time of an operator is
// estimated from the mean number of products in an operator of a layer.
inline constexpr int32_t kMostOperatorsPerMark = 40;
int32_t OperatorsPerMark(const ModelConfig& config, const ForwardBatch& batch, int64_t ahead_us);

}  // namespace skein::cuda
