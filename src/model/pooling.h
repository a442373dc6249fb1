#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace skein {

// The hidden states, after the final norm, that become a prompt's embedding.
enum class Pooling : uint8_t {
  kLast,  // the last token's
  kMean,  // the mean of all, added in the order of positions (docs/numerics.md)
  kCls,   // the first token's
};

// Reads the pooling of a model directory in the layout of sentence-transformers
// (1_Pooling/config.json); nullopt without that file. Fails with kUnsupported for another mode, for
// several modes at once, and for prompts that are excluded from the pooling.
Result<std::optional<Pooling>> LoadPooling(const std::string& model_dir);

}  // namespace skein
