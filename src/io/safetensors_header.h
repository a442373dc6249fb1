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

// One entry of a safetensors header, after it was checked.
struct TensorInfo {
  std::string file_dtype;       // the spelling in the file: "BF16"
  std::optional<DType> dtype;   // nullopt for a type of the format without a DType ("I64")
  std::vector<int64_t> shape;   // every dimension >= 0
  uint64_t begin = 0, end = 0;  // bytes in the file, [begin, end)
};

// The entries of a file, by tensor name.
struct SafetensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  uint64_t data_begin = 0;  // offset of the tensor data in the file
};

// The layout of a safetensors file:
//
//   [0, 8)       n: header length, little-endian u64, at most kMaxHeaderBytes
//   [8, 8 + n)   JSON object: name -> {"dtype", "shape", "data_offsets": [begin, end)}
//   [8 + n, ..)  the data; tensors cover all of it, without gap or overlap
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

// Reads and checks the header of a file of `file_bytes` bytes, which messages call `name`. `prefix`
// is the beginning of the file, or the whole file. It must contain the whole header, unless the
// file itself is shorter. The entries are checked against each other and against the length of the
// file. Fails with kInvalidArgument if anything does not fit. Never reads beyond `prefix`.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const std::byte> prefix,
                                                 uint64_t file_bytes, const std::string& name);

std::string ShapeString(const std::vector<int64_t>& shape);  // "[3, 4]"

}  // namespace skein
