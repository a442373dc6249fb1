#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/blocks/block_format.h"

namespace skein {

// One element type of GGUF files. Elements come in blocks; a row of a tensor consists of whole
// blocks.
struct GgufType {
  uint32_t id;  // its number in the file
  const char* name;
  int64_t block_elements;
  int64_t block_bytes;
  // Converts `num_blocks` blocks, at any alignment, to num_blocks * block_elements values. The
  // arithmetic is f32, without contraction, in the order of the format's reference implementation.
  void (*dequantize)(const std::byte* blocks, int64_t num_blocks, float* out);
  std::optional<BlockFormat> format;  // in which matrices stay packed in memory; none: they are
                                      // widened
};

// All types that can be read. A new type is a function and an entry.
std::span<const GgufType> GgufTypes();

const GgufType* FindGgufType(uint32_t id);  // null if it cannot be read

// The type's name for messages, such as "type 12 (Q4_K)". Types that cannot be read have names,
// too.
std::string GgufTypeName(uint32_t id);

}  // namespace skein
