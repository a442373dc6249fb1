#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/weights/weight_choices.h"

namespace skein {

// How far weights of few bits move the next token's distribution, over all positions of some texts.
struct QuantizationReport {
  int64_t num_positions = 0;
  // exp of the mean negative log-probability of the texts' own next tokens.
  double perplexity = 0;
  double quantized_perplexity = 0;
  // The largest of log-probabilities, over the whole vocabulary.
  double max_difference = 0;
  double mean_difference = 0;
  // Each token's difference counts as much as the token is probable.
  double expected_difference = 0;
  double top1_agreement = 0;  // share of positions whose most probable token is the same
  double mean_kl = 0;         // of the quantized distribution from the other, in nats
  double max_kl = 0;
  int64_t weight_bytes = 0;
  int64_t quantized_weight_bytes = 0;
};

struct QuantizationOptions {
  std::string model_dir;
  std::string quantized_dir;  // of the quantized weights; empty: the same
  ComputeChoice dtype = ComputeChoice::kAuto;
  Quantization quantization = Quantization::kInt8;
  int threads = 0;  // 0: all processors
};

// Runs each sequence of tokens through the model with and without quantized weights, which are in
// memory together. The two have the same vocabulary. REQUIRES: sequences of 1 to the model's
// context of ids below its vocabulary. Errors name the option or file that is wrong.
Result<QuantizationReport> CompareQuantization(const QuantizationOptions& options,
                                               std::span<const std::vector<int32_t>> sequences);

}  // namespace skein
