#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/weights/weight_choices.h"

namespace skein {

// How far quantized weights change the distribution of the next token, over all positions of some
// texts.
struct QuantizationReport {
  int64_t num_positions = 0;
  // exp(mean negative log-probability of the texts' actual next tokens).
  double perplexity = 0;
  double quantized_perplexity = 0;
  // The largest difference of log-probabilities, over the whole vocabulary.
  double max_difference = 0;
  double mean_difference = 0;
  // The mean difference of log-probabilities, in which tokens are weighted by their probability.
  double expected_difference = 0;
  double top1_agreement = 0;  // share of positions at which both have the same most probable token
  double mean_kl = 0;         // of the quantized distribution from the plain one, in nats
  double max_kl = 0;
  int64_t weight_bytes = 0;
  int64_t quantized_weight_bytes = 0;
};

struct QuantizationOptions {
  std::string model_dir;
  std::string quantized_dir;  // directory of the quantized weights; empty: the model's own
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kInt8;
  KvCacheType kv_cache_dtype = KvCacheType::kAuto;  // with the quantized weights
  int threads = 0;                                  // 0: one per processor
};

// Runs each sequence of tokens through the model with plain weights and with quantized ones, which
// are in memory at the same time and have the same vocabulary. REQUIRES: sequences of at least one
// token, within the model's context, with ids below its vocabulary. Errors name the wrong option or
// file.
Result<QuantizationReport> CompareQuantization(const QuantizationOptions& options,
                                               std::span<const std::vector<int32_t>> sequences);

}  // namespace skein
