#pragma once

#include <optional>
#include <string>

#include "apps/model/gguf_architecture.h"
#include "base/result.h"
#include "io/gguf_writer.h"
#include "model/config/config.h"

namespace skein {

// GGUF's name of the model's architecture. kUnsupported names an architecture that has no name
// there, an encoder, a head that generates nothing, and weights that are quantized already.
Result<const GgufArchitecture*> GgufArchitectureOf(const ModelConfig& config);

// Adds general.* and the sizes, norms and rotations of the model: "<architecture>.*".
void AddConfigEntries(const ModelConfig& config, const GgufArchitecture& architecture,
                      GgufEntries* entries);

// The factors of the rotation's frequencies, [head_dim / 2], which Llama 3.1's scaling takes in
// place of entries; empty: none.
std::vector<float> RopeFactors(const ModelConfig& config);

// The member of a config.json in which two models differ; empty: they compute the same. A Mistral
// without windows is a Llama.
std::string FirstDifference(const ModelConfig& a, const ModelConfig& b);

}  // namespace skein
