#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace skein {

// Which hidden states, after the final norm, become a prompt's embedding.
enum class Pooling : uint8_t {
  kLast,  // that of the last token
  kMean,  // the mean of all, added in the order of the positions (docs/numerics.md)
  kCls,   // that of the first token
};

// What a model directory in the layout of sentence-transformers says (1_Pooling/config.json);
// nullopt where it has no such file. Fails with kUnsupported for a mode other than the three,
// several at once, or prompts that are left out.
Result<std::optional<Pooling>> LoadPooling(const std::string& model_dir);

}  // namespace skein
