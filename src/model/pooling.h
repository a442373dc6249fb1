#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace skein {

// The hidden states, after the final norm, that become a prompt's embedding.
enum class Pooling : uint8_t {
  kLast,  // the last token's
  kMean,  // the mean of all states, added in the order of positions (docs/numerics.md)
  kCls,   // the first token's
  // None: the head that predicts masked tokens makes a sparse vector of all states (SparseFields).
  kSplade,
};

// Reads the pooling of a model directory in the layout of sentence-transformers
// (1_Pooling/config.json). Returns nullopt if that file is absent. Fails with kUnsupported for any
// other mode, for several modes together, and for prompts that are excluded from the pooling.
Result<std::optional<Pooling>> LoadPooling(const std::string& model_dir);

}  // namespace skein
