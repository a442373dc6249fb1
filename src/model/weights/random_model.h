#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/threads/thread_team.h"
#include "io/model_files.h"
#include "model/config/config.h"

namespace skein {

struct RandomWeightsOptions {
  DType dtype = DType::kBf16;
  uint64_t seed = 0;
  int64_t max_shard_bytes = 5'000'000'000;
};

// Writes random weights of the config's shape as safetensors into `dir`, in chunks of a few
// megabytes per thread. A weight depends only on (seed, tensor name, position): it is the same on
// any machine, with any number of threads and files. The distribution is bell-shaped. Matrices have
// a standard deviation of 1 / sqrt(inputs), divided by sqrt(2 layers) if they add to the residual.
// Gains are near 1. So activations keep their size through the layers.
Status WriteRandomWeights(const ModelConfig& config, const RandomWeightsOptions& options,
                          const std::string& dir, ThreadTeam* team, const LoadProgress& progress);

}  // namespace skein
