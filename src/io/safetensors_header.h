#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace skein {

// One entry of a safetensors header, checked.
struct TensorInfo {
  std::string file_dtype;       // as the file spells it: "BF16"
  std::optional<DType> dtype;   // nullopt: known to the format, but not a type of ours ("I64")
  std::vector<int64_t> shape;   // every dimension >= 0
  uint64_t begin = 0, end = 0;  // bytes in the file, [begin, end)
};

// What a file holds, by tensor name.
struct SafetensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  uint64_t data_begin = 0;  // where the tensor data starts in the file
};

// The layout of a safetensors file:
//
//   [0, 8)       n: header length, little-endian u64, at most kMaxHeaderBytes
//   [8, 8 + n)   JSON object: name -> {"dtype", "shape", "data_offsets": [begin, end)}
//   [8 + n, ..)  the data, covered by the tensors without gap or overlap to the very end
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

// Reads and checks the header of a file of `file_bytes` bytes. `prefix` is its beginning, or all of
// it; it must reach to the end of the header unless the file itself is shorter. `name` is what
// messages call it. Every claim of the header is held against the others and against the length
// of the file; whatever does not fit is kInvalidArgument. Never reads past `prefix`.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> prefix,
                                                 uint64_t file_bytes, const std::string& name);

std::string ShapeString(const std::vector<int64_t>& shape);  // "[3, 4]"

}  // namespace skein
