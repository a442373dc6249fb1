#pragma once

#include <optional>
#include <string>

#include "apps/gguf/gguf_architecture.h"
#include "base/result.h"
#include "io/gguf_writer.h"
#include "model/config/config.h"

namespace skein {

// The name of the model's architecture in GGUF. kUnsupported, with the reason, for an architecture
// without a name there, an encoder, a head that generates nothing, and weights that are quantized
// already.
Result<const GgufArchitecture*> GgufArchitectureOf(const ModelConfig& config);

// Adds general.* and the sizes, norms and rotations of the model: "<architecture>.*".
void AddConfigEntries(const ModelConfig& config, const GgufArchitecture& architecture,
                      GgufEntries* entries);

// The factors of the rotation's frequencies, [head_dim / 2], which represent the RoPE scaling of
// Llama 3.1 in GGUF. Empty for other models.
std::vector<float> RopeFactors(const ModelConfig& config);

// The first member of config.json in which two models differ; empty if both compute the same. A
// Mistral model without windows equals a Llama model.
std::string FirstDifference(const ModelConfig& a, const ModelConfig& b);

}  // namespace skein
