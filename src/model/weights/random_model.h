#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/thread_team.h"
#include "io/safetensors.h"
#include "model/config/config.h"

namespace skein {

struct RandomWeightsOptions {
  DType dtype = DType::kBf16;
  uint64_t seed = 0;
  int64_t max_shard_bytes = 5'000'000'000;
};

// Writes random weights of the config's shape as safetensors into `dir`, in chunks of a few
// megabytes per thread. A weight is a function of (seed, tensor name, position) alone: the same on
// any machine, with any number of threads and any sharding. Numbers are bell-shaped; matrices
// have a standard deviation of 1 / sqrt(inputs), those that add to the residual sqrt(2 layers)
// less, gains lie around 1, so that activations keep their size through the layers.
Status WriteRandomWeights(const ModelConfig& config, const RandomWeightsOptions& options,
                          const std::string& dir, ThreadTeam* team, const LoadProgress& progress);

}  // namespace skein
