#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/gguf_metadata.h"
#include "io/gguf_types.h"

namespace skein {

// One entry of the tensor directory of a GGUF file, after it was checked.
struct GgufTensorInfo {
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;   // row-major, the longest stride first; every dimension > 0
  uint64_t begin = 0, end = 0;  // bytes in the file, [begin, end)
};

struct GgufHeader {
  uint32_t version = 0;
  GgufMetadata metadata;
  std::map<std::string, GgufTensorInfo, std::less<>> tensors;
};

// The layout of a GGUF file, versions 2 and 3, little-endian:
//
//   "GGUF", u32 version, u64 number of tensors, u64 number of metadata entries
//   metadata      each: string key, u32 kind, value; a string is u64 length and bytes
//   directory     each: string name, u32 number of dimensions, u64 each dimension (the contiguous
//                 one first), u32 type, u64 offset
//   padding to general.alignment (32 where that is absent), then the data: offsets count from here
//
// Reads and checks the header in `file`, which is the whole file; messages call it `name`. Counts,
// lengths, sizes and offsets are checked against each other and against the end of the file;
// tensors must not overlap. Fails with kInvalidArgument if a value does not fit, and with
// kUnsupported for another version or another element type. Both errors name the field. Memory is
// at most a small multiple of the header's own bytes. Strings of the result point into `file`.
Result<GgufHeader> ParseGgufHeader(std::span<const std::byte> file, const std::string& name);

inline constexpr uint64_t kGgufMaxNameBytes = 65535;  // of a key or a tensor's name
inline constexpr uint32_t kGgufMaxDims = 4;
inline constexpr uint64_t kGgufMaxAlignment = uint64_t{1} << 20;

}  // namespace skein
